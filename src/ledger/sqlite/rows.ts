/** How a record becomes a row of this ledger, and how a row's numbers and times are read. */
import type { Job } from "../../job/job.js";
import { ALL_STATUSES } from "../../job/state.js";
import type { Counts, WorkerBeat } from "../ledger.js";
import { rowReader, text, unreadable, type CellReader } from "../sql/rows.js";
import type { Look } from "../sql/watchers.js";
import type { Cell, CountsAnswer, Row } from "./protocol.js";

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

/** The row of a beat: the columns of a worker but for the two times. */
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

/** A number that differs when what others can see of a job differs; the statements have the same one. */
export function lookOf({ attempt, status, cancelRequestedAtMs }: Job): number {
  const cancelRequested = cancelRequestedAtMs === null ? 0 : 1;
  return (attempt * 8 + ALL_STATUSES.indexOf(status)) * 2 + cancelRequested;
}

/** @param look as `lookOf`, or -1 for a job that is not there. */
export function standing(look: Look): "queued" | "running" | "over" {
  const status = typeof look === "number" && look >= 0 ? ALL_STATUSES[(look >> 1) % 8] : undefined;
  return status === "queued" || status === "running" ? status : "over";
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

export function integer(cell: Cell | undefined): number {
  if (typeof cell !== "number") throw unreadable("a number", cell);
  return cell;
}

export const cellReader: CellReader = {
  number: integer,
  time: (cell) => fromIso(text(cell)),
};

export const { toJob, toClaimedJob, toWorker } = rowReader(cellReader);
