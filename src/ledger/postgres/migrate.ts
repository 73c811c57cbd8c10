/**
 * Brings a schema to the state of this version: makes it when it is missing, and runs the numbered
 * files of migrations/ that it has not seen. All of them are one transaction, but for an index on a
 * table that has grown large, which is built beside the running workers. What was run stands in
 * `jobtable_migrations`.
 *
 * - One process does it at a time: it holds a lock of the schema's own, for which others try again and
 *   again. They don't wait for it in a statement: a statement that waits has a snapshot, for which in
 *   turn an index that is built concurrently waits.
 * - Running workers are not held up. A change of the table waits for its lock for a second, in which
 *   all that come after it wait too; then it makes way and tries again. An index on a large table is
 *   built CONCURRENTLY, outside of any transaction, while this connection keeps the lock of the schema;
 *   should that be broken off, what is left of it is dropped by the next one who tries.
 */
import type pg from "pg";
import { LedgerError } from "../../job/errors.js";
import type { Clock } from "../../runtime/clock.js";
import type { Connect } from "./connections.js";
import type { MigrationPlan } from "../migration-plan.js";
import {
  missingOf,
  planOf,
  readMigrations,
  recordOf,
  type Applied,
  type Migration,
} from "../sql/migrations.js";
import { isLockTimeout } from "./failures.js";

/** Where it happens: the schema, and the server as messages name it. */
export interface Place {
  readonly schema: string;
  readonly label: string;
}

/** A table of less than this many bytes is read within a moment. */
const LARGE_TABLE_BYTES = 64 * 1024 * 1024;
/** What starting with a lock on the table costs the others at most, per try. */
const LOCK_LIMIT_MS = 1_000;
const LOCK_TRIES = 10;
/** Others do their work in between. */
const LOCK_PAUSE_MS = 5_000;
const BUSY_PAUSE_MS = 100;
/** Another process that builds an index on a huge table. */
const BUSY_LIMIT_MS = 65 * 60_000;
const BUILD_LIMIT_MS = 60 * 60_000;

const LIMITS = `SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0;
  SET LOCAL lock_timeout = ${String(LOCK_LIMIT_MS)}`;
const TRY_LOCK = `SELECT pg_try_advisory_xact_lock(
  hashtextextended('jobtable migrations of ' || $1, 0)) AS found`;
const IS_LARGE = `SELECT coalesce(pg_relation_size(to_regclass($1 || '.async_jobs')), 0)
  >= ${String(LARGE_TABLE_BYTES)} AS found`;
/** A statement with values keeps its snapshot until the next one, and the index would wait for that. */
const LET_GO = "SET LOCAL lock_timeout = 0";
/** In a migration: where the word belongs, followed by the name of the index. */
const CONCURRENTLY = /:concurrently (\w+)/;
const HAS_TABLE = "SELECT to_regclass($1 || '.jobtable_migrations') IS NOT NULL AS found";
const HAS_SCHEMA = "SELECT to_regnamespace($1) IS NOT NULL AS found";
const CREATE_SCHEMA = "CREATE SCHEMA :schema";
const CREATE_TABLE = `CREATE TABLE :schema.jobtable_migrations (
  number integer NOT NULL,
  name text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT pk_jobtable_migrations PRIMARY KEY (number)
)`;
const APPLIED = "SELECT number, name FROM :schema.jobtable_migrations ORDER BY number";
const RECORD = "INSERT INTO :schema.jobtable_migrations (number, name) VALUES ($1, $2)";

/** All of this version; in them stands `:schema` where the schema's name belongs. */
export function migrations(): Migration[] {
  return readMigrations(new URL("./migrations/", import.meta.url));
}

/** @param schema a name that needs no quotes (address.ts sees to that). */
export function inSchema(sql: string, schema: string): string {
  return sql.replaceAll(":schema", schema);
}

export interface MigrationPorts {
  readonly clock: Clock;
  /** To the same place. */
  readonly connect: Connect;
}

/**
 * @throws LedgerError `ledger_newer` when the schema has seen a migration that is not in the list,
 * `ledger_unavailable` when another process does not get done; the server's own errors as they are.
 * Of a step that failed nothing is left that could be mistaken for a step that was done.
 */
export async function migrate(
  client: pg.Client,
  place: Place,
  migrations: readonly Migration[],
  ports: MigrationPorts,
): Promise<void> {
  const { clock } = ports;
  const busyUntilMs = clock.monotonicMs() + BUSY_LIMIT_MS;
  let refusals = 0;
  while ((await missing(client, place, migrations)).length > 0) {
    try {
      if (await migrateNext(client, place, migrations, ports)) continue;
      if (clock.monotonicMs() > busyUntilMs) throw busyForLong(place);
      await pause(clock, BUSY_PAUSE_MS);
    } catch (error) {
      refusals += 1;
      if (!isLockTimeout(error) || refusals >= LOCK_TRIES) throw error;
      await pause(clock, LOCK_PAUSE_MS);
    }
  }
}

/** As many as can be one transaction. False: another process is at it. */
async function migrateNext(
  client: pg.Client,
  place: Place,
  migrations: readonly Migration[],
  ports: MigrationPorts,
): Promise<boolean> {
  await client.query("BEGIN");
  try {
    await client.query(LIMITS);
    const locked = await found(client, TRY_LOCK, place);
    if (locked) {
      if (!(await found(client, HAS_SCHEMA, place)))
        await client.query(inSchema(CREATE_SCHEMA, place.schema));
      if (!(await found(client, HAS_TABLE, place)))
        await client.query(inSchema(CREATE_TABLE, place.schema));
      const [first, ...others] = await missing(client, place, migrations);
      const beside = await found(client, IS_LARGE, place);
      if (first !== undefined && beside && CONCURRENTLY.test(first.sql)) {
        await client.query(LET_GO);
        await buildBeside(first, place, ports);
        await record(client, place, first);
      } else
        for (const migration of first === undefined ? [] : [first, ...others]) {
          if (beside && CONCURRENTLY.test(migration.sql)) break;
          await client.query(patiently(statementsOf(migration, place, "")));
          await record(client, place, migration);
        }
    }
    await client.query("COMMIT");
    return locked;
  } catch (error) {
    await client.query("ROLLBACK").catch(() => undefined);
    throw error;
  }
}

/** What has not been recorded was not finished, whatever there is of it. */
async function buildBeside(
  migration: Migration,
  place: Place,
  { connect }: MigrationPorts,
): Promise<void> {
  const index = CONCURRENTLY.exec(migration.sql)?.[1] ?? "";
  const builder = await connect(BUILD_LIMIT_MS);
  try {
    await builder.query(patiently(`DROP INDEX CONCURRENTLY IF EXISTS ${place.schema}.${index}`));
    await builder.query(patiently(statementsOf(migration, place, "CONCURRENTLY")));
  } finally {
    await builder.end();
  }
}

function statementsOf({ sql }: Migration, { schema }: Place, concurrently: string): string {
  return inSchema(sql, schema).replaceAll(":concurrently", concurrently);
}

/** The driver takes a limit for a single statement, which its types leave out. */
function patiently(text: string): pg.QueryConfig & { readonly query_timeout: number } {
  return { text, query_timeout: BUILD_LIMIT_MS };
}

async function record(client: pg.Client, { schema }: Place, migration: Migration): Promise<void> {
  await client.query(inSchema(RECORD, schema), [migration.number, migration.name]);
}

function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.timer(ms, resolve);
  });
}

function busyForLong(place: Place): LedgerError {
  return new LedgerError(
    "ledger_unavailable",
    `${ledgerAt(place)}: another process has been bringing it up to date for ${String(BUSY_LIMIT_MS / 60_000)} minutes: wait for it, or end it`,
  );
}

/** What `migrate` would run now. @throws as it does. */
export async function plan(
  client: pg.Client,
  place: Place,
  migrations: readonly Migration[],
): Promise<MigrationPlan> {
  const seen = await applied(client, place);
  const concurrently = (await found(client, IS_LARGE, place)) ? "CONCURRENTLY" : "";
  const missing = missingOf(migrations, seen ?? [], ledgerAt(place));
  // With the record of each: whoever runs them in a shell leaves what `migrate` would leave.
  const statements = missing.flatMap((migration) => [
    statementsOf(migration, place, concurrently),
    inSchema(recordOf(RECORD, migration, "now()"), place.schema),
  ]);
  if (seen === null) statements.unshift(inSchema(CREATE_TABLE, place.schema));
  if (!(await found(client, HAS_SCHEMA, place)))
    statements.unshift(inSchema(CREATE_SCHEMA, place.schema));
  return planOf(migrations, seen ?? [], statements);
}

/** Names a ledger in messages. */
export function ledgerAt({ label, schema }: Place): string {
  return `the ledger ${label} (schema ${schema})`;
}

async function missing(
  client: pg.Client,
  place: Place,
  migrations: readonly Migration[],
): Promise<Migration[]> {
  return missingOf(migrations, (await applied(client, place)) ?? [], ledgerAt(place));
}

/** Null: it is no ledger. */
export async function applied(client: pg.Client, place: Place): Promise<Applied[] | null> {
  if (!(await found(client, HAS_TABLE, place))) return null;
  const { rows } = await client.query<Applied>(inSchema(APPLIED, place.schema));
  return rows;
}

async function found(client: pg.Client, sql: string, { schema }: Place): Promise<boolean> {
  const { rows } = await client.query<{ found: boolean }>(sql, [schema]);
  return rows[0]?.found === true;
}
