/** The one place that knows the order of a row's columns, and how the record and the row map to each other. */
import { LedgerError } from "../../job/errors.js";
import type { Job, Phase } from "../../job/job.js";
import { toAttemptErrors } from "../sql/attempt-errors.js";
import { ALL_STATUSES, type Status } from "../../job/state.js";
import type { WorkerRecord } from "../ledger.js";

/** All values are read as the server writes them: text, or null. */
export type Row = readonly (string | null)[];
type Cell = string | null | undefined;

const TIME_COLUMNS: ReadonlySet<string> = new Set([
  "run_at",
  "created_at",
  "started_at",
  "finished_at",
  "last_heartbeat",
  "cancel_requested_at",
]);

const JOB_COLUMNS = [
  "job_id",
  "plan_id",
  "phase",
  "task",
  "queue",
  "status",
  "priority",
  "run_at",
  "attempt",
  "max_attempts",
  "timeout_ms",
  "created_at",
  "started_at",
  "finished_at",
  "last_heartbeat",
  "cancel_requested_at",
  "worker_id",
  "schema_version",
  "error_message",
  "request_id",
  "idempotency_key",
  "progress_json",
  "attempt_errors",
] as const;

/** Where the payload or the result stands in the rows that have one. */
export const AFTER_JOB = JOB_COLUMNS.length;

const WORKER_COLUMNS = [
  "worker_id",
  "host",
  "pid",
  "pid_stamp",
  "state",
  "tasks_json",
  "max_workers",
  "processed",
  "failed",
  "cancelled",
  "started_at",
  "last_heartbeat",
] as const;

/** A time as ms since the epoch, whatever the session's time zone and date style. Whole ms are kept, so rounding is exact. */
export const asMs = (time: string): string => `round(date_part('epoch', ${time}) * 1000)`;

/** The columns of a job as `toJob` reads them. @param from the table's name in the statement. */
export const jobColumns = (from: string): string => columnsOf(JOB_COLUMNS, from).join(", ");
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

function columnsOf(names: readonly string[], from: string): string[] {
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

export function toJob(row: Row): Job {
  return {
    jobId: text(row[0]),
    planId: textOrNull(row[1]),
    phase: phaseOrNull(row[2]),
    task: text(row[3]),
    queue: text(row[4]),
    status: toStatus(row[5]),
    priority: number(row[6]),
    runAtMs: number(row[7]),
    attempt: number(row[8]),
    maxAttempts: number(row[9]),
    timeoutMs: numberOrNull(row[10]),
    createdAtMs: number(row[11]),
    startedAtMs: numberOrNull(row[12]),
    finishedAtMs: numberOrNull(row[13]),
    lastHeartbeatMs: numberOrNull(row[14]),
    cancelRequestedAtMs: numberOrNull(row[15]),
    workerId: textOrNull(row[16]),
    schemaVersion: number(row[17]),
    errorMessage: textOrNull(row[18]),
    requestId: textOrNull(row[19]),
    idempotencyKey: textOrNull(row[20]),
    progressJson: textOrNull(row[21]),
    attemptErrors: toAttemptErrors(textOrNull(row[22])),
  };
}

export function toWorker(row: Row): WorkerRecord {
  return {
    workerId: text(row[0]),
    host: text(row[1]),
    pid: number(row[2]),
    pidStamp: text(row[3]),
    state: row[4] === "draining" ? "draining" : "running",
    tasks: toTasks(text(row[5])),
    maxWorkers: number(row[6]),
    processed: number(row[7]),
    failed: number(row[8]),
    cancelled: number(row[9]),
    startedAtMs: number(row[10]),
    lastHeartbeatMs: number(row[11]),
  };
}

function toTasks(tasksJson: string): string[] {
  try {
    const names: unknown = JSON.parse(tasksJson);
    return Array.isArray(names) ? names.filter((name) => typeof name === "string") : [];
  } catch {
    throw unreadable("a list of tasks", tasksJson);
  }
}

export function toStatus(cell: Cell): Status {
  const status = ALL_STATUSES.find((known) => known === cell);
  if (status === undefined) throw unreadable("a status", cell);
  return status;
}

export function text(cell: Cell): string {
  if (typeof cell !== "string") throw unreadable("text", cell);
  return cell;
}

export function textOrNull(cell: Cell): string | null {
  return cell === null ? null : text(cell);
}

export function number(cell: Cell): number {
  const value = typeof cell === "string" ? Number(cell) : Number.NaN;
  if (Number.isNaN(value)) throw unreadable("a number", cell);
  return value;
}

export function numberOrNull(cell: Cell): number | null {
  return cell === null ? null : number(cell);
}

function phaseOrNull(cell: Cell): Phase | null {
  if (cell === null || cell === "execute" || cell === "apply") return cell;
  throw unreadable("a phase", cell);
}

function unreadable(what: string, cell: Cell): LedgerError {
  return new LedgerError(
    "ledger_unreadable",
    `the ledger has ${JSON.stringify(cell ?? null)} where ${what} belongs: something else has written to it`,
  );
}
