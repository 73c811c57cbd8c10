/** The one place that knows the order of a row's columns, and how the record and the row map to each other. */
import { LedgerError } from "../../job/errors.js";
import type { Job, Phase } from "../../job/job.js";
import { toAttemptErrors } from "../sql/attempt-errors.js";
import { ALL_STATUSES, type Status } from "../../job/state.js";
import type { Counts, WorkerBeat, WorkerRecord } from "../ledger.js";
import type { Cell, CountsAnswer, Row } from "./protocol.js";

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

/** Where the payload or the result stands in the rows that have one. */
export const AFTER_JOB = JOB_COLUMNS.length;

/** What a submit writes, in this order; the statement adds status and attempt. */
export const SUBMITTED_COLUMNS = [
  "job_id",
  "plan_id",
  "phase",
  "task",
  "queue",
  "priority",
  "run_at",
  "max_attempts",
  "timeout_ms",
  "created_at",
  "schema_version",
  "request_id",
  "idempotency_key",
  "payload_fingerprint",
  "payload_json",
] as const;
/** Where the key and the fingerprint stand in them. */
export const KEY_AT = SUBMITTED_COLUMNS.indexOf("idempotency_key");
export const FINGERPRINT_AT = SUBMITTED_COLUMNS.indexOf("payload_fingerprint");

/** What a beat writes, in this order; the statement adds started_at and last_heartbeat. */
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
] as const;

/** Beyond these, ISO-8601 takes a sign and two more digits, and its order as text is lost. */
const FIRST_MS = -62_167_219_200_000;
const LAST_MS = 253_402_300_799_999;

/** The last time made into text: most times within a millisecond are the same. */
let lastMs = 0;
let lastIso = new Date(0).toISOString();

/** @param ms since the Unix epoch; held to the years 0 to 9999. */
export function toIso(ms: number): string {
  if (ms !== lastMs) {
    lastIso = new Date(Math.min(Math.max(ms, FIRST_MS), LAST_MS)).toISOString();
    lastMs = ms;
  }
  return lastIso;
}

/** @throws LedgerError `ledger_unreadable` when the text is not a time. */
export function fromIso(text: string): number {
  const ms = Date.parse(text);
  if (Number.isNaN(ms)) throw unreadable("a time", text);
  return ms;
}

/** The row of a job that asks to be admitted. */
export function toSubmittedRow(job: Job, fingerprint: string | null, payloadJson: string): Row {
  return [
    job.jobId,
    job.planId,
    job.phase,
    job.task,
    job.queue,
    job.priority,
    toIso(job.runAtMs),
    job.maxAttempts,
    job.timeoutMs,
    toIso(job.createdAtMs),
    job.schemaVersion,
    job.requestId,
    job.idempotencyKey,
    fingerprint,
    payloadJson,
  ];
}

/** @param row the columns of `JOB_COLUMNS`; more may follow. */
export function toJob(row: Row): Job {
  return {
    jobId: text(row[0]),
    planId: textOrNull(row[1]),
    phase: phaseOrNull(row[2]),
    task: text(row[3]),
    queue: text(row[4]),
    status: toStatus(row[5]),
    priority: integer(row[6]),
    runAtMs: fromIso(text(row[7])),
    attempt: integer(row[8]),
    maxAttempts: integer(row[9]),
    timeoutMs: integerOrNull(row[10]),
    createdAtMs: fromIso(text(row[11])),
    startedAtMs: timeOrNull(row[12]),
    finishedAtMs: timeOrNull(row[13]),
    lastHeartbeatMs: timeOrNull(row[14]),
    cancelRequestedAtMs: timeOrNull(row[15]),
    workerId: textOrNull(row[16]),
    schemaVersion: integer(row[17]),
    errorMessage: textOrNull(row[18]),
    requestId: textOrNull(row[19]),
    idempotencyKey: textOrNull(row[20]),
    progressJson: textOrNull(row[21]),
    attemptErrors: toAttemptErrors(textOrNull(row[22])),
  };
}

export function toWorkerRow(worker: WorkerBeat): Row {
  return [
    worker.workerId,
    worker.host,
    worker.pid,
    worker.pidStamp,
    worker.state,
    JSON.stringify(worker.tasks),
    worker.maxWorkers,
    worker.processed,
    worker.failed,
    worker.cancelled,
  ];
}

/** @param row the columns of `WORKER_COLUMNS`, then started_at and last_heartbeat. */
export function toWorker(row: Row): WorkerRecord {
  return {
    workerId: text(row[0]),
    host: text(row[1]),
    pid: integer(row[2]),
    pidStamp: text(row[3]),
    state: text(row[4]) === "draining" ? "draining" : "running",
    tasks: toTasks(text(row[5])),
    maxWorkers: integer(row[6]),
    processed: integer(row[7]),
    failed: integer(row[8]),
    cancelled: integer(row[9]),
    startedAtMs: fromIso(text(row[10])),
    lastHeartbeatMs: fromIso(text(row[11])),
  };
}

export function toCounts(answer: CountsAnswer, nowMs: number): Counts {
  const { queued, running, terminal, oldestRunAt } = answer;
  const waitedMs = oldestRunAt === null ? -1 : nowMs - fromIso(oldestRunAt);
  return {
    queued,
    running,
    total: queued + running + terminal,
    oldestQueuedMs: waitedMs < 0 ? null : waitedMs,
  };
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

export function integer(cell: Cell | undefined): number {
  if (typeof cell !== "number") throw unreadable("a number", cell);
  return cell;
}

function integerOrNull(cell: Cell | undefined): number | null {
  return cell === null ? null : integer(cell);
}

function timeOrNull(cell: Cell | undefined): number | null {
  return cell === null ? null : fromIso(text(cell));
}

function phaseOrNull(cell: Cell | undefined): Phase | null {
  if (cell === null || cell === "execute" || cell === "apply") return cell;
  throw unreadable("a phase", cell);
}

function unreadable(what: string, cell: Cell | undefined): LedgerError {
  return new LedgerError(
    "ledger_unreadable",
    `the ledger has ${JSON.stringify(cell)} where ${what} belongs: something else has written to it`,
  );
}
