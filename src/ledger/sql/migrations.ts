/**
 * The numbered files that bring a database to the schema of this version, and which of them it has
 * not seen. How they are run is each ledger's own.
 */
import { readdirSync, readFileSync } from "node:fs";
import { LedgerError } from "../../job/errors.js";
import type { MigrationPlan } from "../ledger.js";

export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly sql: string;
}

/** One that was run, as the database has it. */
export type Applied = Pick<Migration, "number" | "name">;

const FILE_NAME = /^(\d{4})-([a-z0-9-]+)\.sql$/;

/** @param folder where the files are. */
export function readMigrations(folder: URL): Migration[] {
  return readdirSync(folder)
    .sort()
    .flatMap((file) => {
      const [, number, name] = FILE_NAME.exec(file) ?? [];
      if (number === undefined || name === undefined) return [];
      return [{ number: Number(number), name, sql: readFileSync(new URL(file, folder), "utf8") }];
    });
}

/**
 * @param ledger as messages name it.
 * @throws LedgerError `ledger_newer` when the database has seen a migration that is not in the list.
 */
export function missingOf(
  migrations: readonly Migration[],
  applied: readonly Applied[],
  ledger: string,
): Migration[] {
  for (const { number, name } of applied)
    if (!migrations.some((known) => known.number === number && known.name === name))
      throw new LedgerError(
        "ledger_newer",
        `${ledger} has migration ${String(number)} (${name}), which this version of jobtable does not know: upgrade jobtable`,
      );
  const seen = new Set(applied.map(({ number }) => number));
  return migrations.filter(({ number }) => !seen.has(number));
}

/** @param statements what opening would run. */
export function planOf(
  migrations: readonly Migration[],
  applied: readonly Applied[],
  statements: readonly string[],
): MigrationPlan {
  const last = (of: readonly Applied[]): number => Math.max(0, ...of.map(({ number }) => number));
  return { from: last(applied), to: last(migrations), statements };
}

/** @param ledger as messages name it. */
export function missingLedger(ledger: string): LedgerError {
  return new LedgerError(
    "ledger_missing",
    `there is no ${ledger}: name another one, or start a server or a worker, which makes it`,
  );
}
