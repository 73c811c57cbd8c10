/**
 * The moves of a job as one pure function over records: what the TRANSITIONS table allows, with the
 * guards that a table of states can't hold (owner and attempt, attempts left, due times). It copies,
 * reads no clock and never throws; a refused move is null. SQL ledgers say the same in statements,
 * and the conformance suite compares.
 *
 * Two rules live here so that no ledger and no caller can forget them: a job whose cancellation was
 * requested never goes back to the queue, and an error message is bounded, clean, and stays only
 * with jobs that failed or timed out (or wait for their next attempt).
 */
import { NO_ATTEMPT_ERRORS, type AttemptError, type Claim, type Job, type NewJob } from "./job.js";
import {
  cleanText,
  MAX_ATTEMPT_ERROR_CHARS,
  MAX_ATTEMPT_ERRORS,
  MAX_ERROR_CHARS,
  MAX_FINGERPRINT_CHARS,
  MAX_IDEMPOTENCY_KEY_CHARS,
  MAX_REQUEST_ID_CHARS,
} from "./limits.js";
import { allows, TRANSITIONS, type JobEvent } from "./state.js";

/** An event with what it carries. */
export type Change =
  | { readonly event: "claim"; readonly workerId: string }
  | { readonly event: "cancel" | "succeed" | "stop" | "release" | "bury" }
  | {
      readonly event: "expire" | "reject" | "fail" | "time_out" | "strand" | "rescue";
      readonly errorMessage: string;
    }
  | { readonly event: "retry"; readonly errorMessage: string; readonly delayMs: number };

/** The queue of a job that names none. */
export const DEFAULT_QUEUE = "default";

/** The record of a job that was just admitted. */
export function newlyQueued(job: NewJob, nowMs: number): Job {
  return {
    jobId: job.jobId,
    planId: job.planId ?? null,
    phase: job.phase ?? null,
    task: job.task,
    queue: job.queue ?? DEFAULT_QUEUE,
    status: "queued",
    priority: job.priority ?? 0,
    runAtMs: earliestStartMs(job, nowMs),
    attempt: 0,
    maxAttempts: job.maxAttempts ?? 1,
    timeoutMs: job.timeoutMs ?? null,
    createdAtMs: nowMs,
    startedAtMs: null,
    finishedAtMs: null,
    lastHeartbeatMs: null,
    cancelRequestedAtMs: null,
    workerId: null,
    schemaVersion: job.schemaVersion,
    errorMessage: null,
    attemptErrors: NO_ATTEMPT_ERRORS,
    requestId: requestIdOf(job),
    idempotencyKey: cleanOrNull(job.idempotency?.key, MAX_IDEMPOTENCY_KEY_CHARS),
    progressJson: null,
  };
}

/** The id of the request as it is recorded. */
export function requestIdOf({ requestId }: NewJob): string | null {
  return cleanOrNull(requestId, MAX_REQUEST_ID_CHARS);
}

/** The fingerprint as it is recorded, and compared; null for a job without a key. */
export function fingerprintOf({ idempotency }: NewJob): string | null {
  return cleanOrNull(idempotency?.fingerprint, MAX_FINGERPRINT_CHARS);
}

function cleanOrNull(text: string | null | undefined, maxChars: number): string | null {
  return text === null || text === undefined ? null : cleanText(text, maxChars);
}

function earliestStartMs({ runAtMs, delayMs }: NewJob, nowMs: number): number {
  const delayed = nowMs + Math.max(0, delayMs ?? 0);
  if (runAtMs === undefined || runAtMs === null) return delayed;
  return delayMs === undefined || delayMs === null ? runAtMs : Math.max(runAtMs, delayed);
}

/** Whether `claim` is what makes its worker the owner of `job` right now. */
export function owns(job: Job, claim: Claim): boolean {
  return (
    job.status === "running" && job.workerId === claim.workerId && job.attempt === claim.attempt
  );
}

/** What happens to a running job whose worker is lost. */
export function eventWhenLost(job: Job): "bury" | "rescue" | "strand" {
  if (job.cancelRequestedAtMs !== null) return "bury";
  return job.attempt < job.maxAttempts ? "rescue" : "strand";
}

/**
 * The record after `change`, or null when the job may not make that move now. The caller has checked
 * who asks (`owns`); a claim's tasks are the caller's too.
 */
export function transition(job: Job, change: Change, nowMs: number): Job | null {
  if (!allows(job.status, change.event)) return null;
  if (job.cancelRequestedAtMs !== null) {
    if (change.event === "retry" || change.event === "release")
      return end(job, "stop", null, nowMs);
    if (change.event === "rescue") return end(job, "bury", null, nowMs);
  }
  switch (change.event) {
    case "claim":
      return claimed(job, change.workerId, nowMs);
    case "cancel":
    case "succeed":
    case "stop":
    case "bury":
      return end(job, change.event, null, nowMs);
    case "expire":
    case "reject":
    case "fail":
    case "time_out":
    case "strand":
      return end(job, change.event, change.errorMessage, nowMs);
    case "retry":
      return requeued(job, change.errorMessage, nowMs, Math.max(0, change.delayMs));
    case "rescue":
      return requeued(job, change.errorMessage, nowMs, 0);
    case "release":
      return { ...job, status: TRANSITIONS.release.to, attempt: job.attempt - 1 };
    default:
      return change satisfies never;
  }
}

function claimed(job: Job, workerId: string, nowMs: number): Job | null {
  if (job.runAtMs > nowMs || job.attempt >= job.maxAttempts) return null;
  return {
    ...job,
    status: TRANSITIONS.claim.to,
    attempt: job.attempt + 1,
    workerId,
    startedAtMs: nowMs,
    lastHeartbeatMs: nowMs,
    errorMessage: null,
  };
}

function requeued(job: Job, errorMessage: string, nowMs: number, delayMs: number): Job | null {
  const { attempt, workerId, attemptErrors } = job;
  if (attempt >= job.maxAttempts) return null;
  const error: AttemptError = {
    attempt,
    workerId: workerId ?? "",
    atMs: nowMs,
    errorMessage: attemptMessage(errorMessage),
  };
  return {
    ...job,
    status: "queued",
    runAtMs: nowMs + delayMs,
    errorMessage: cleanText(errorMessage, MAX_ERROR_CHARS),
    attemptErrors: [...attemptErrors, error].slice(-MAX_ATTEMPT_ERRORS),
  };
}

/** A message as it is kept of an attempt that was not the last. */
export function attemptMessage(errorMessage: string): string {
  return cleanText(errorMessage, MAX_ATTEMPT_ERROR_CHARS);
}

function end(job: Job, event: JobEvent, errorMessage: string | null, nowMs: number): Job {
  return {
    ...job,
    status: TRANSITIONS[event].to,
    finishedAtMs: nowMs,
    errorMessage: errorMessage === null ? null : cleanText(errorMessage, MAX_ERROR_CHARS),
  };
}
