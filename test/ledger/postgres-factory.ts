/** The PostgreSQL ledger on a real server, in a schema of its own; a second handle has its own connections. */
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

export function newSchema(): string {
  return `test_${randomBytes(6).toString("hex")}`;
}

export function inSchemaUrl(server: string, schema: string): string {
  const url = new URL(server);
  url.searchParams.set("schema", schema);
  return url.href;
}

export async function openPostgresHarness(server: string): Promise<PostgresHarness> {
  const schema = newSchema();
  const url = inSchemaUrl(server, schema);
  const opened: Ledger[] = [];
  const open = async (): Promise<Ledger> => {
    const ledger = await openPostgresLedger({ url, clock: systemClock, logger: silentLogger });
    opened.push(ledger);
    return ledger;
  };
  const admin = new pg.Client({ connectionString: server });
  admin.on("error", () => undefined);
  await admin.connect();
  const query = async <Row extends pg.QueryResultRow>(
    sql: string,
    values: unknown[] = [],
  ): Promise<Row[]> => (await admin.query<Row>(sql.replaceAll(":schema", schema), values)).rows;
  const back = (columns: readonly string[]): string =>
    columns.map((column) => `${column} = ${column} - $1 * interval '1 ms'`).join(", ");
  return {
    ledger: await open(),
    second: open,
    schema,
    url,
    query,
    async nowMs() {
      const [row] = await query<{ ms: number }>("SELECT date_part('epoch', now()) * 1000 AS ms");
      return row?.ms ?? Number.NaN;
    },
    async age(ms) {
      await query(`UPDATE :schema.async_jobs SET ${back(TIMES)}`, [ms]);
      await query(`UPDATE :schema.async_workers SET ${back(["started_at", "last_heartbeat"])}`, [
        ms,
      ]);
    },
    async close() {
      await Promise.all(opened.map((ledger) => ledger.close()));
      await query("DROP SCHEMA :schema CASCADE");
      await admin.end();
    },
  };
}

export function postgresFactory(server: string): LedgerFactory {
  return { shared: true, open: () => openPostgresHarness(server) };
}
