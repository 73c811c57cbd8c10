/**
 * The numbered files that bring a database to the schema of this version, and which of them it has
 * not seen. How they are run is each ledger's own.
 */
import { readdirSync, readFileSync } from "node:fs";
import { LedgerError } from "../../job/errors.js";
import type { MigrationPlan } from "../migration-plan.js";

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

/**
 * The statement that records a migration, with its values written in: names are of a-z, 0-9 and "-".
 * @param record with `$1`, `$2` or `?`, in order, for number, name and, where it takes one, the time.
 * @param now what stands for the time.
 */
export function recordOf(record: string, { number, name }: Applied, now: string): string {
  const values = [String(number), `'${name}'`, now];
  return record.replace(/\$\d|\?/g, () => values.shift() ?? "");
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

/**
 * For those who only look, and must not change what others work with.
 * @param ledger as messages name it.
 * @throws LedgerError `ledger_older` when something is missing; as `missingOf`.
 */
export function refuseOlder(
  migrations: readonly Migration[],
  applied: readonly Applied[],
  ledger: string,
): void {
  if (missingOf(migrations, applied, ledger).length === 0) return;
  const { from, to } = planOf(migrations, applied, []);
  throw new LedgerError(
    "ledger_older",
    `${ledger} has version ${String(from)} and must be brought to ${String(to)} first: run jobtable migrate, or start a server or a worker of this version`,
  );
}

/** @param ledger as messages name it. */
export function missingLedger(ledger: string): LedgerError {
  return new LedgerError(
    "ledger_missing",
    `there is no ${ledger}: name another one, or start a server or a worker, which makes it`,
  );
}
