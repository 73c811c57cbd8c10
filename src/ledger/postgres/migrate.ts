/**
 * Brings a schema to the state of this version: makes it when it is missing, and runs the numbered
 * files of migrations/ that it has not seen, all in one transaction behind a lock of the schema's own,
 * so that of two processes which open at once one waits and then finds nothing to do. What was run
 * stands in `jobtable_migrations`.
 */
import { readdirSync, readFileSync } from "node:fs";
import type pg from "pg";
import { LedgerError } from "../../job/errors.js";

export interface Migration {
  readonly number: number;
  readonly name: string;
  /** With `:schema` where the schema's name belongs. */
  readonly sql: string;
}

/** Where it happens: the schema, and the server as messages name it. */
export interface Place {
  readonly schema: string;
  readonly label: string;
}

const FILE_NAME = /^(\d{4})-([a-z0-9-]+)\.sql$/;
/** A migration may have a large table to walk. */
const NO_LIMIT = "SET LOCAL statement_timeout = 0";
const LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('jobtable migrations of ' || $1, 0))";
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

/** @param folder where the files are; default: beside this module. */
export function readMigrations(
  folder: URL = new URL("./migrations/", import.meta.url),
): Migration[] {
  return readdirSync(folder)
    .sort()
    .flatMap((file) => {
      const [, number, name] = FILE_NAME.exec(file) ?? [];
      if (number === undefined || name === undefined) return [];
      return [{ number: Number(number), name, sql: readFileSync(new URL(file, folder), "utf8") }];
    });
}

/** @param schema a name that needs no quotes (address.ts sees to that). */
export function inSchema(sql: string, schema: string): string {
  return sql.replaceAll(":schema", schema);
}

/**
 * @throws LedgerError `ledger_newer` when the schema has seen a migration that is not in the list;
 * the server's own errors as they are. Nothing is left half done.
 */
export async function migrate(
  client: pg.Client,
  place: Place,
  migrations: readonly Migration[],
): Promise<void> {
  if ((await missing(client, place, migrations)).length === 0) return;
  await client.query("BEGIN");
  try {
    await client.query(NO_LIMIT);
    await client.query(LOCK, [place.schema]);
    if (!(await found(client, HAS_SCHEMA, place)))
      await client.query(inSchema(CREATE_SCHEMA, place.schema));
    if (!(await found(client, HAS_TABLE, place)))
      await client.query(inSchema(CREATE_TABLE, place.schema));
    for (const { number, name, sql } of await missing(client, place, migrations)) {
      await client.query(inSchema(sql, place.schema));
      await client.query(inSchema(RECORD, place.schema), [number, name]);
    }
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK").catch(() => undefined);
    throw error;
  }
}

async function missing(
  client: pg.Client,
  place: Place,
  migrations: readonly Migration[],
): Promise<Migration[]> {
  if (!(await found(client, HAS_TABLE, place))) return [...migrations];
  const { rows } = await client.query<{ number: number; name: string }>(
    inSchema(APPLIED, place.schema),
  );
  for (const { number, name } of rows)
    if (!migrations.some((known) => known.number === number && known.name === name))
      throw new LedgerError(
        "ledger_newer",
        `the ledger ${place.label} (schema ${place.schema}) has migration ${String(number)} (${name}), which this version of jobtable does not know: upgrade jobtable`,
      );
  const seen = new Set(rows.map(({ number }) => number));
  return migrations.filter(({ number }) => !seen.has(number));
}

async function found(client: pg.Client, sql: string, { schema }: Place): Promise<boolean> {
  const { rows } = await client.query<{ found: boolean }>(sql, [schema]);
  return rows[0]?.found === true;
}
