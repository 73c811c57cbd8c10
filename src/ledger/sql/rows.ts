/**
 * The order of a row's columns as they are read, and what a row becomes: the same in both SQL ledgers,
 * but for how numbers and times come, which each says of itself.
 */
import { LedgerError } from "../../job/errors.js";
import type { Job, Phase } from "../../job/job.js";
import { ALL_STATUSES, TRANSITIONS, type Status } from "../../job/state.js";
import type { WorkerRecord } from "../ledger.js";
import { toAttemptErrors } from "./attempt-errors.js";

export type Cell = string | number | null;

/** The columns of a job as they are read, in this order. */
export const JOB_COLUMNS = [
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

/**
 * What a claim answers of a job, in this order. The rest of one that was just claimed is known; its
 * `run_at` may be null where it is its `created_at`.
 */
export const CLAIMED_COLUMNS = [
  "job_id",
  "plan_id",
  "phase",
  "task",
  "queue",
  "priority",
  "run_at",
  "attempt",
  "max_attempts",
  "timeout_ms",
  "created_at",
  "started_at",
  "schema_version",
  "request_id",
  "idempotency_key",
  "progress_json",
  "attempt_errors",
] as const;

/** Where the payload or the result stands in the rows that have one. */
export const AFTER_JOB = JOB_COLUMNS.length;

/** The columns of a worker as they are read, in this order. */
export const WORKER_COLUMNS = [
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

/** How cells become numbers, and times in ms. Both throw where a cell is neither. */
export interface CellReader {
  readonly number: (cell: Cell | undefined) => number;
  readonly time: (cell: Cell | undefined) => number;
}

/** What reads rows: the columns of a job or of a worker first; more may follow. */
export function rowReader({ number, time }: CellReader): {
  readonly toJob: (row: readonly Cell[]) => Job;
  /** @param row CLAIMED_COLUMNS. */
  readonly toClaimedJob: (row: readonly Cell[], workerId: string) => Job;
  readonly toWorker: (row: readonly Cell[]) => WorkerRecord;
} {
  const numberOrNull = nullable(number);
  const timeOrNull = (cell: Cell | undefined): number | null => (cell === null ? null : time(cell));
  return {
    toJob: (row) => ({
      jobId: text(row[0]),
      planId: textOrNull(row[1]),
      phase: phaseOrNull(row[2]),
      task: text(row[3]),
      queue: text(row[4]),
      status: toStatus(row[5]),
      priority: number(row[6]),
      runAtMs: time(row[7]),
      attempt: number(row[8]),
      maxAttempts: number(row[9]),
      timeoutMs: numberOrNull(row[10]),
      createdAtMs: time(row[11]),
      startedAtMs: timeOrNull(row[12]),
      finishedAtMs: timeOrNull(row[13]),
      lastHeartbeatMs: timeOrNull(row[14]),
      cancelRequestedAtMs: timeOrNull(row[15]),
      workerId: textOrNull(row[16]),
      schemaVersion: number(row[17]),
      errorMessage: textOrNull(row[18]),
      requestId: textOrNull(row[19]),
      idempotencyKey: textOrNull(row[20]),
      progressJson: textOrNull(row[21]),
      attemptErrors: toAttemptErrors(textOrNull(row[22])),
    }),
    toClaimedJob: claimedJobReader({ number, time }),
    toWorker: (row) => ({
      workerId: text(row[0]),
      host: text(row[1]),
      pid: number(row[2]),
      pidStamp: text(row[3]),
      state: text(row[4]) === "draining" ? "draining" : "running",
      tasks: toTasks(text(row[5])),
      maxWorkers: number(row[6]),
      processed: number(row[7]),
      failed: number(row[8]),
      cancelled: number(row[9]),
      startedAtMs: time(row[10]),
      lastHeartbeatMs: time(row[11]),
    }),
  };
}

function nullable<T>(read: (cell: Cell | undefined) => T): (cell: Cell | undefined) => T | null {
  return (cell) => (cell === null ? null : read(cell));
}

/** Reads CLAIMED_COLUMNS. */
function claimedJobReader({ number, time }: CellReader) {
  const numberOrNull = nullable(number);
  return (row: readonly Cell[], workerId: string): Job => {
    const createdAtMs = time(row[10]);
    const startedAtMs = time(row[11]);
    return {
      jobId: text(row[0]),
      planId: textOrNull(row[1]),
      phase: phaseOrNull(row[2]),
      task: text(row[3]),
      queue: text(row[4]),
      status: TRANSITIONS.claim.to,
      priority: number(row[5]),
      runAtMs: row[6] === null ? createdAtMs : time(row[6]),
      attempt: number(row[7]),
      maxAttempts: number(row[8]),
      timeoutMs: numberOrNull(row[9]),
      createdAtMs,
      startedAtMs,
      finishedAtMs: null,
      lastHeartbeatMs: startedAtMs,
      cancelRequestedAtMs: null,
      workerId,
      schemaVersion: number(row[12]),
      errorMessage: null,
      requestId: textOrNull(row[13]),
      idempotencyKey: textOrNull(row[14]),
      progressJson: textOrNull(row[15]),
      attemptErrors: toAttemptErrors(textOrNull(row[16])),
    };
  };
}

/** The order in which jobs are claimed. */
export function inOrderOfClaims(a: Job, b: Job): number {
  return b.priority - a.priority || a.runAtMs - b.runAtMs || (a.jobId < b.jobId ? -1 : 1);
}

/** @param tasksJson a JSON array of names; anything else in it is left out. */
export function toTasks(tasksJson: string): string[] {
  try {
    const names: unknown = JSON.parse(tasksJson);
    return Array.isArray(names) ? names.filter((name) => typeof name === "string") : [];
  } catch {
    throw unreadable("a list of tasks", tasksJson);
  }
}

export function toStatus(cell: Cell | undefined): Status {
  const status = ALL_STATUSES.find((known) => known === cell);
  if (status === undefined) throw unreadable("a status", cell);
  return status;
}

export function text(cell: Cell | undefined): string {
  if (typeof cell !== "string") throw unreadable("text", cell);
  return cell;
}

export function textOrNull(cell: Cell | undefined): string | null {
  return cell === null ? null : text(cell);
}

function phaseOrNull(cell: Cell | undefined): Phase | null {
  return cell === null ? null : toPhase(cell);
}

export function toPhase(cell: Cell | undefined): Phase {
  if (cell === "execute" || cell === "apply") return cell;
  throw unreadable("a phase", cell);
}

/** @param what was expected. */
export function unreadable(what: string, cell: Cell | undefined): LedgerError {
  return new LedgerError(
    "ledger_unreadable",
    `the ledger has ${JSON.stringify(cell ?? null)} where ${what} belongs: something else has written to it`,
  );
}
