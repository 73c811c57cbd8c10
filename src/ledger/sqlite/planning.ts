/** What opening a database file as a ledger would change in it, without changing it. */
import Database from "better-sqlite3";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { missingOf, planOf, recordOf, type Migration } from "../sql/migrations.js";
import type { MigrationPlan } from "../migration-plan.js";
import { explain, toError } from "./failures.js";
import { applied, CREATE_TABLE, ledgerAt, migrations, RECORD } from "./migrate.js";

/** @throws LedgerError when the file can't be read as a ledger, or is one of a newer version. */
export function plannedMigrations(file: string): MigrationPlan {
  const path = resolve(file);
  const all = migrations();
  if (!existsSync(path)) return planOf(all, [], [CREATE_TABLE, ...stepsOf(all)]);
  try {
    const db = new Database(path, { readonly: true, fileMustExist: true });
    try {
      const seen = applied(db);
      const missing = stepsOf(missingOf(all, seen ?? [], ledgerAt(path)));
      return planOf(all, seen ?? [], seen === null ? [CREATE_TABLE, ...missing] : missing);
    } finally {
      db.close();
    }
  } catch (error) {
    throw toError(explain(error, path).failure);
  }
}

/** With the record of each, so that whoever runs them in a shell leaves what `migrate` would leave. */
function stepsOf(migrations: readonly Migration[]): string[] {
  const now = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')";
  return migrations.flatMap((migration) => [migration.sql, recordOf(RECORD, migration, now)]);
}
