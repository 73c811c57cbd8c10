/**
 * The PostgreSQL ledger on a real server, in a schema that no other test uses meanwhile; a second handle
 * has its own connections. Schemas are emptied and used again: to make one anew for each test would
 * take longer than most tests.
 */
import { randomBytes } from "node:crypto";
import pg from "pg";
import type { Ledger } from "../../src/ledger/ledger.js";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.js";
import { systemClock } from "../../src/runtime/clock.js";
import { silentLogger } from "../../src/runtime/logger.js";
import type { LedgerFactory, LedgerHarness } from "./harness.js";

export interface PostgresHarness extends LedgerHarness {
  readonly second: () => Promise<Ledger>;
  readonly schema: string;
  /** Of the store, with its schema. */
  readonly url: string;
  /** Runs a statement beside the ledgers; `:schema` stands for the schema. */
  query<Row extends pg.QueryResultRow>(sql: string, values?: unknown[]): Promise<Row[]>;
}

const TIMES = [
  "run_at",
  "created_at",
  "started_at",
  "finished_at",
  "last_heartbeat",
  "cancel_requested_at",
];
/** The times within a job's errors. */
const ERRORS_BACK = `attempt_errors = (
  SELECT json_agg(jsonb_set(e, '{at_ms}', to_jsonb((e->>'at_ms')::float8 - $1::float8)) ORDER BY n)::text
  FROM jsonb_array_elements(attempt_errors::jsonb) WITH ORDINALITY AS a (e, n))`;
const EMPTY = `TRUNCATE :schema.async_jobs, :schema.async_workers,
    :schema.plans, :schema.plan_runs, :schema.plan_steps;
  UPDATE :schema.async_counts SET queued = 0, running = 0, terminal = 0, granted = 0`;

export function newSchema(): string {
  return `test_${randomBytes(6).toString("hex")}`;
}

export function inSchemaUrl(server: string, schema: string): string {
  const url = new URL(server);
  url.searchParams.set("schema", schema);
  // By which tests find the connections of one store.
  url.searchParams.set("application_name", schema);
  return url.href;
}

/** Runs statements beside the ledgers. */
export async function openAdmin(server: string): Promise<pg.Client> {
  const admin = new pg.Client({ connectionString: server });
  admin.on("error", () => undefined);
  await admin.connect();
  return admin;
}

export class PostgresStores implements LedgerFactory {
  readonly shared = true;
  readonly #server: string;
  readonly #admin: Promise<pg.Client>;
  /** Every schema that was made, and those that are empty and free. */
  readonly #schemas: string[] = [];
  readonly #free: string[] = [];

  constructor(server: string) {
    this.#server = server;
    this.#admin = openAdmin(server);
  }

  async open(): Promise<PostgresHarness> {
    const admin = await this.#admin;
    const schema = this.#free.pop() ?? newSchema();
    if (!this.#schemas.includes(schema)) this.#schemas.push(schema);
    const url = inSchemaUrl(this.#server, schema);
    const opened: Ledger[] = [];
    const open = async (): Promise<Ledger> => {
      const ledger = await openPostgresLedger({ url, clock: systemClock, logger: silentLogger });
      opened.push(ledger);
      return ledger;
    };
    const query = async <Row extends pg.QueryResultRow>(
      sql: string,
      values?: unknown[],
    ): Promise<Row[]> => (await admin.query<Row>(sql.replaceAll(":schema", schema), values)).rows;
    return {
      ledger: await open(),
      second: open,
      schema,
      url,
      query,
      async nowMs() {
        const [row] = await query<{ ms: number }>(
          "SELECT floor(date_part('epoch', now()) * 1000) AS ms",
        );
        return row?.ms ?? Number.NaN;
      },
      async age(ms) {
        await query(`UPDATE :schema.async_jobs SET ${back(TIMES)}, ${ERRORS_BACK}`, [ms]);
        await query(`UPDATE :schema.async_workers SET ${back(["started_at", "last_heartbeat"])}`, [
          ms,
        ]);
        await query(`UPDATE :schema.plans SET ${back(["created_at", "used_at"])}`, [ms]);
        await query(`UPDATE :schema.plan_runs SET ${back(["created_at"])}`, [ms]);
      },
      close: async () => {
        await Promise.all(opened.map((ledger) => ledger.close()));
        await query(EMPTY);
        this.#free.push(schema);
      },
    };
  }

  /** Removes every schema. */
  async close(): Promise<void> {
    const admin = await this.#admin;
    for (const schema of this.#schemas)
      await admin.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    await admin.end();
  }
}

function back(columns: readonly string[]): string {
  return columns.map((column) => `${column} = ${column} - $1 * interval '1 ms'`).join(", ");
}
