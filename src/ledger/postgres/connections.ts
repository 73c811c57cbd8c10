/**
 * The connections of one ledger: a few that run statements, and the means to make others (one that
 * listens, one that migrates). A statement is one round trip and one transaction. What breaks is
 * thrown away and made anew by the next call, so nothing has to notice when a server is back.
 *
 * Sessions begin with settings that keep plans right (see statements.ts) and bound every statement;
 * a proxy that pools transactions may not take them. Then nothing is set or prepared at all: each
 * statement is sent with its text, and so planned for the values that come with it.
 *
 * Faults are `LedgerError`s (failures.ts). Bounded: the time to connect, to wait for a free
 * connection, and to wait for an answer.
 */
import pg from "pg";
import { JobtableError } from "../../job/errors.js";
import type { Logger } from "../../runtime/logger.js";
import type { Address } from "./address.js";
import {
  breaksConnection,
  explain,
  isForeignStatement,
  isLostRace,
  isRefusedSetting,
  isStaleConnection,
} from "./failures.js";
import type { Row } from "./rows.js";
import type { Statement } from "./statements.js";

/** More do not make a ledger faster: calls come in lists, and the counts are one row. */
const POOL_SIZE = 4;
/** One stays warm, so that a call after a pause does not pay for a connection. */
const POOL_IDLE_SIZE = 1;
const IDLE_MS = 60_000;
const CONNECT_LIMIT_MS = 5_000;
/** At the server; every statement is bounded and takes some ms, unless it waits for a lock. */
const STATEMENT_LIMIT_MS = 10_000;
/** Here: a server that is gone without a word. */
const ANSWER_LIMIT_MS = 15_000;
/** Where the network drops silent connections, or takes packets to nowhere. */
const KEEP_ALIVE_MS = 10_000;
/** What was rolled back after a lost race, or not even sent, is run again, at most so often. */
const TRIES = 5;

/**
 * Each statement is planned once in a session: planning a claim takes longer than a claim. Such a plan
 * outlives the table that it was made for, which may have been empty, so it is made from index scans
 * alone: these are right for any size, and statements.ts leaves no wrong index to choose.
 */
const PLAN_MODE = "force_generic_plan";
const LIMIT = String(STATEMENT_LIMIT_MS);
export const SESSION_SETTINGS: readonly (readonly [name: string, value: string])[] = [
  ["plan_cache_mode", PLAN_MODE],
  ["enable_seqscan", "off"],
  ["enable_bitmapscan", "off"],
  ["jit", "off"],
  // What is asked for is in memory: an index is as cheap as it looks.
  ["random_page_cost", "1.1"],
  ["default_transaction_isolation", "read committed"],
  ["statement_timeout", LIMIT],
  ["idle_in_transaction_session_timeout", LIMIT],
];
const SESSION_OPTIONS = SESSION_SETTINGS.map(
  ([name, value]) => `-c ${name}=${value.replaceAll(" ", "\\ ")}`,
).join(" ");

/** Makes a connection of its own, whose statements may take this long at the server. The caller ends it. */
export type Connect = (limitMs: number) => Promise<pg.Client>;

const SHOW = `SELECT current_setting('plan_cache_mode') AS "planMode",
  current_setting('server_encoding') AS encoding`;
/** It alone holds every text that there is. */
const ENCODING = "UTF8";
/** Values as the server writes them. */
const AS_TEXT = { getTypeParser: () => (value: unknown) => value };

export class Connections {
  readonly #address: Address;
  readonly #pool: pg.Pool;
  readonly #clients = new Set<pg.PoolClient>();
  /** Whether sessions have their settings and can keep prepared statements. */
  readonly #direct: { value: boolean };

  private constructor(address: Address, direct: boolean, logger: Logger) {
    this.#address = address;
    this.#direct = { value: direct };
    this.#pool = new pg.Pool({
      ...clientConfig(address, direct),
      max: POOL_SIZE,
      min: POOL_IDLE_SIZE,
      idleTimeoutMillis: IDLE_MS,
      allowExitOnIdle: true,
    });
    const broken = (error: Error): void => {
      logger.debug({ error: error.message }, "a connection to the ledger broke");
    };
    this.#pool.on("error", broken);
    // A connection that breaks while it is in use fails its statement, and says so here as well.
    this.#pool.on("connect", (client) => {
      client.on("error", broken);
      this.#clients.add(client);
    });
    this.#pool.on("remove", (client) => {
      this.#clients.delete(client);
    });
  }

  /**
   * Finds out how this server can be talked to, and has `prepare` done on the connection that it took.
   * @throws LedgerError when it can't be reached, JobtableError `invalid_config` when its database can't
   * hold every text, and what `prepare` throws.
   */
  static async open(
    address: Address,
    logger: Logger,
    prepare: (client: pg.Client, connect: Connect) => Promise<void>,
  ): Promise<Connections> {
    try {
      const client = await firstConnection(address);
      try {
        const direct = await hasSettings(client, address.label);
        if (!direct)
          logger.info({ server: address.label }, "a proxy pools transactions: nothing is prepared");
        await prepare(client, (limitMs) =>
          connected(direct ? patient(address, limitMs) : address, direct),
        );
        return new Connections(address, direct, logger);
      } finally {
        await client.end();
      }
    } catch (error) {
      throw explain(error, address.label);
    }
  }

  get label(): string {
    return this.#address.label;
  }

  /** @throws LedgerError, or an Error when this call's values are at fault; `cause` is the server's. */
  async run(statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#runOnce(statement, values);
      } catch (error) {
        // Others that were sent by their names meanwhile come here, too.
        const foreign = isForeignStatement(error);
        if (foreign) this.#direct.value = false;
        if (tries >= TRIES || !(foreign || isLostRace(error) || isStaleConnection(error)))
          throw explain(error, this.label);
      }
    }
  }

  async #runOnce({ name, text }: Statement, values: readonly unknown[]): Promise<Row[]> {
    const client = await this.#pool.connect();
    try {
      const { rows } = await client.query<(string | null)[]>({
        ...(this.#direct.value ? { name } : {}),
        text,
        values: values.map(storable),
        rowMode: "array",
        types: AS_TEXT,
      });
      client.release();
      return rows;
    } catch (error) {
      client.release(breaksConnection(error));
      throw error;
    }
  }

  /** A connection of its own. The caller ends it. @throws LedgerError */
  async connect(): Promise<pg.Client> {
    try {
      return await connected(this.#address, this.#direct.value);
    } catch (error) {
      throw explain(error, this.label);
    }
  }

  /** Ends what waits for an answer: its call rejects. */
  cut(): void {
    // With a statement under way the driver does not wait for it.
    for (const client of this.#clients) client.end().catch(() => undefined);
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }
}

async function firstConnection(address: Address): Promise<pg.Client> {
  try {
    return await connected(address, true);
  } catch (error) {
    if (!isRefusedSetting(error)) throw error;
    return connected(address, false);
  }
}

/**
 * A proxy may also drop what it does not know.
 * @throws JobtableError `invalid_config` when the database can't hold every text.
 */
async function hasSettings(client: pg.Client, label: string): Promise<boolean> {
  const { rows } = await client.query<{ planMode: string; encoding: string }>(SHOW);
  const encoding = rows[0]?.encoding;
  if (encoding !== ENCODING)
    throw new JobtableError(
      "invalid_config",
      `the ledger ${label}: its database is in ${String(encoding)}, which can't hold every text: name one that was made with ENCODING 'UTF8' TEMPLATE template0`,
    );
  return rows[0]?.planMode === PLAN_MODE;
}

async function connected(address: Address, direct: boolean): Promise<pg.Client> {
  const client = new pg.Client(clientConfig(address, direct));
  // Without a listener, an error that comes later would end the process.
  client.on("error", () => undefined);
  try {
    await client.connect();
    return client;
  } catch (error) {
    client.end().catch(() => undefined);
    throw error;
  }
}

/** The same place, with another limit on statements than sessions begin with. */
function patient(address: Address, limitMs: number): Address {
  const options = `${address.options} -c statement_timeout=${String(limitMs)}`;
  return { ...address, options };
}

function clientConfig(address: Address, direct: boolean): pg.ClientConfig {
  const options = [...(direct ? [SESSION_OPTIONS] : []), address.options].join(" ").trim();
  return {
    connectionString: address.connectionString,
    fallback_application_name: "jobtable",
    connectionTimeoutMillis: CONNECT_LIMIT_MS,
    query_timeout: ANSWER_LIMIT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    ...(options === "" ? {} : { options }),
  };
}

/** PostgreSQL can't hold a NUL: a text that has one is a text that it does not know. */
function storable(value: unknown): unknown {
  return typeof value === "string" && value.includes("\0")
    ? value.replaceAll("\0", "\uFFFD")
    : value;
}
