/** What opening a database file as a ledger would change in it, without changing it. */
import Database from "better-sqlite3";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { missingOf, planOf } from "../sql/migrations.js";
import type { MigrationPlan } from "../ledger.js";
import { explain, toError } from "./failures.js";
import { applied, CREATE_TABLE, ledgerAt, migrations } from "./migrate.js";

/** @throws LedgerError when the file can't be read as a ledger, or is one of a newer version. */
export function plannedMigrations(file: string): MigrationPlan {
  const path = resolve(file);
  const all = migrations();
  if (!existsSync(path)) return planOf(all, [], [CREATE_TABLE, ...all.map(({ sql }) => sql)]);
  try {
    const db = new Database(path, { readonly: true, fileMustExist: true });
    try {
      const seen = applied(db);
      const missing = missingOf(all, seen ?? [], ledgerAt(path)).map(({ sql }) => sql);
      return planOf(all, seen ?? [], seen === null ? [CREATE_TABLE, ...missing] : missing);
    } finally {
      db.close();
    }
  } catch (error) {
    throw toError(explain(error, path).failure);
  }
}
