/**
 * Brings a database to the schema of this version: runs the numbered files of migrations/ that it has
 * not seen, all in one transaction that takes the write lock first, so that two processes which open
 * at once do not both run them. What was run stands in `jobtable_migrations`.
 */
import type { Database } from "better-sqlite3";
import { readdirSync, readFileSync } from "node:fs";
import { LedgerError } from "../../job/errors.js";
import { toIso } from "./rows.js";

export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly sql: string;
}

const FILE_NAME = /^(\d{4})-([a-z0-9-]+)\.sql$/;

const CREATE_TABLE = `CREATE TABLE IF NOT EXISTS jobtable_migrations (
  number INTEGER NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  applied_at TEXT NOT NULL
)`;
const HAS_TABLE = "SELECT count(*) FROM sqlite_schema WHERE name = 'jobtable_migrations'";
const APPLIED = "SELECT number, name FROM jobtable_migrations ORDER BY number";
const RECORD = "INSERT INTO jobtable_migrations (number, name, applied_at) VALUES (?, ?, ?)";

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

/**
 * @throws LedgerError `ledger_newer` when the database has seen a migration that is not in the list.
 */
export function migrate(
  db: Database,
  path: string,
  migrations: readonly Migration[],
  nowMs: number,
): void {
  if (missing(db, path, migrations).length === 0) return;
  db.transaction(() => {
    db.exec(CREATE_TABLE);
    const record = db.prepare<[number, string, string]>(RECORD);
    for (const { number, name, sql } of missing(db, path, migrations)) {
      db.exec(sql);
      record.run(number, name, toIso(nowMs));
    }
  }).immediate();
}

function missing(db: Database, path: string, migrations: readonly Migration[]): Migration[] {
  if (db.prepare(HAS_TABLE).pluck().get() === 0) return [...migrations];
  const applied = db.prepare<[], { number: number; name: string }>(APPLIED).all();
  for (const { number, name } of applied)
    if (!migrations.some((known) => known.number === number && known.name === name))
      throw new LedgerError(
        "ledger_newer",
        `the ledger ${path} has migration ${String(number)} (${name}), which this version of jobtable does not know: upgrade jobtable`,
      );
  const seen = new Set(applied.map(({ number }) => number));
  return migrations.filter(({ number }) => !seen.has(number));
}
