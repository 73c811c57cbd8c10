/** How this ledger's statements read columns, and how their cells, which are all texts, are read. */
import {
  CLAIMED_COLUMNS,
  JOB_COLUMNS,
  rowReader,
  unreadable,
  WORKER_COLUMNS,
  type Cell,
  type CellReader,
} from "../sql/rows.js";

/** All values are read as the server writes them: text, or null. */
export type Row = readonly (string | null)[];

const TIME_COLUMNS: ReadonlySet<string> = new Set([
  "run_at",
  "created_at",
  "started_at",
  "finished_at",
  "last_heartbeat",
  "cancel_requested_at",
  "used_at",
]);

/** A time as ms since the epoch, whatever the session's time zone and date style. Whole ms are kept, so rounding is exact. */
export const asMs = (time: string): string => `round(date_part('epoch', ${time}) * 1000)`;

/** The columns of a job as `toJob` reads them. @param from the table's name in the statement. */
export const jobColumns = (from: string): string => columnsOf(JOB_COLUMNS, from).join(", ");
/**
 * What a claim answers of a job, as `toClaimedJob` reads it. Each cell is a text to write and to read, and
 * most jobs have been due from their submit on.
 */
export const claimedColumns = (from: string): string =>
  columnsOf(CLAIMED_COLUMNS, from)
    .map((column, at) =>
      CLAIMED_COLUMNS[at] === "run_at"
        ? asMs(`nullif(${from}.run_at, ${from}.created_at)`)
        : column,
    )
    .join(", ");
/** The columns of a worker as `toWorker` reads them. */
export const workerColumns = (from: string): string => columnsOf(WORKER_COLUMNS, from).join(", ");

/** The same as texts, for an array of them. */
export const jobCells = (from: string): string => cellsOf(JOB_COLUMNS, from);
export const workerCells = (from: string): string => cellsOf(WORKER_COLUMNS, from);

function cellsOf(names: readonly string[], from: string): string {
  return columnsOf(names, from)
    .map((column) => `(${column})::text`)
    .join(", ");
}

/** Columns as they are read. @param from the table's name in the statement. */
export function columnsOf(names: readonly string[], from: string): string[] {
  return names.map((name) =>
    TIME_COLUMNS.has(name) ? asMs(`${from}.${name}`) : `${from}.${name}`,
  );
}

/** The years that every ledger can hold: 0 to 9999. */
const FIRST_MS = -62_167_219_200_000;
const LAST_MS = 253_402_300_799_999;

export function storableMs(ms: number): number {
  return Math.round(Math.min(Math.max(ms, FIRST_MS), LAST_MS));
}

/** One statement moves no more than this, so that its transaction stays short. */
const LARGEST_CHUNK = 10_000;

export function chunkSize(chunk: number): number {
  return chunk > 0 ? Math.min(Math.floor(chunk), LARGEST_CHUNK) : 0;
}

/** Some 3,000 years: now, less or more an age, stays within what timestamptz can hold. */
const LONGEST_AGE_MS = 1e14;

/** An age as the statements take it, in whole ms. */
export function storableAgeMs(ms: number): number {
  return Math.round(Math.min(Math.max(ms, -LONGEST_AGE_MS), LONGEST_AGE_MS));
}

export function number(cell: Cell | undefined): number {
  const value = typeof cell === "string" ? Number(cell) : Number.NaN;
  if (Number.isNaN(value)) throw unreadable("a number", cell);
  return value;
}

export function numberOrNull(cell: Cell | undefined): number | null {
  return cell === null ? null : number(cell);
}

export const cellReader: CellReader = { number, time: number };

export const { toJob, toClaimedJob, toWorker } = rowReader(cellReader);
