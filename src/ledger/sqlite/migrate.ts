/**
 * Brings a database to the schema of this version: runs the numbered files of migrations/ that it has
 * not seen, all in one transaction that takes the write lock first, so that two processes which open
 * at once do not both run them. What was run stands in `jobtable_migrations`.
 */
import type { Database } from "better-sqlite3";
import { missingOf, readMigrations, type Applied, type Migration } from "../sql/migrations.js";
import { toIso } from "./rows.js";

export const CREATE_TABLE = `CREATE TABLE IF NOT EXISTS jobtable_migrations (
  number INTEGER NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  applied_at TEXT NOT NULL
)`;
const HAS_TABLE = "SELECT count(*) FROM sqlite_schema WHERE name = 'jobtable_migrations'";
const APPLIED = "SELECT number, name FROM jobtable_migrations ORDER BY number";
/** Binds number, name and time. */
export const RECORD = "INSERT INTO jobtable_migrations (number, name, applied_at) VALUES (?, ?, ?)";

/** All of this version. */
export function migrations(): Migration[] {
  return readMigrations(new URL("./migrations/", import.meta.url));
}

/** Names a ledger in messages. */
export function ledgerAt(path: string): string {
  return `the ledger ${path}`;
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
  const missing = (): Migration[] => missingOf(migrations, applied(db) ?? [], ledgerAt(path));
  if (missing().length === 0) return;
  db.transaction(() => {
    db.exec(CREATE_TABLE);
    const record = db.prepare<[number, string, string]>(RECORD);
    for (const { number, name, sql } of missing()) {
      db.exec(sql);
      record.run(number, name, toIso(nowMs));
    }
  }).immediate();
}

/** Null: it is no ledger. */
export function applied(db: Database): Applied[] | null {
  if (db.prepare(HAS_TABLE).pluck().get() === 0) return null;
  return db.prepare<[], Applied>(APPLIED).all();
}
