/**
 * The record of a job, as every ledger gives it. Times are milliseconds since the Unix epoch (UTC).
 * The payload and the result are large and are not part of it: they are fetched by their own verbs.
 */
import type { Status } from "./state.js";

/** The phase of a plan that a job runs. */
export type Phase = "execute" | "apply";

export interface Job {
  /** 26-character ULID; unique, and in order of submission within one process. Written at submit. */
  readonly jobId: string;
  /** The plan this job belongs to (26-character ULID), or null. Written at submit. */
  readonly planId: string | null;
  readonly phase: Phase | null;
  /** The name of the task to run. Written at submit. */
  readonly task: string;
  readonly queue: string;
  readonly status: Status;
  /** Larger is sooner. Default 0. Written at submit. */
  readonly priority: number;
  /** Not to be claimed before this time. Written at submit, and when it is queued again by a retry or a rescue. */
  readonly runAtMs: number;
  /** How often it was claimed and started, this time included. Written by claim; release takes one back. */
  readonly attempt: number;
  /** How often it may be claimed at most; >= 1. Written at submit. */
  readonly maxAttempts: number;
  /** The limit of one run in ms; null: the task's own. Written at submit. */
  readonly timeoutMs: number | null;
  readonly createdAtMs: number;
  /** When the present or last attempt was claimed. */
  readonly startedAtMs: number | null;
  /** When it became terminal; null until then. */
  readonly finishedAtMs: number | null;
  /** The owner's last beat for this job; set by claim. */
  readonly lastHeartbeatMs: number | null;
  /** When a user asked to cancel the running job; the owner ends it. */
  readonly cancelRequestedAtMs: number | null;
  /** `worker-<8 hex>`: the owner while running, the last owner afterwards. Null while nobody ever claimed it. */
  readonly workerId: string | null;
  /** The version of the task's input. Written at submit. */
  readonly schemaVersion: number;
  /** `ErrorType: message`; null for every job that did not fail or time out. A job queued again carries its last attempt's until it is claimed. */
  readonly errorMessage: string | null;
  /** Of the attempts that were queued again, the oldest first; the newest ten. Written with the requeue. */
  readonly attemptErrors: readonly AttemptError[];
  /** The caller's own id of the request, echoed with the result. */
  readonly requestId: string | null;
  /** Given by the caller, one record per key; it lives as long as the record. Written at submit. */
  readonly idempotencyKey: string | null;
  /** What the handler reported last, as JSON text; null before the first report. */
  readonly progressJson: string | null;
}

/** What went wrong with an attempt that was not the last. */
export interface AttemptError {
  /** Which one: 1 for the first. */
  readonly attempt: number;
  /** The worker that ran it, and may have been lost with it. */
  readonly workerId: string;
  /** When the job was queued again. */
  readonly atMs: number;
  /** As `Job.errorMessage`; at most 1,000 characters. */
  readonly errorMessage: string;
}

/** Of most jobs. */
export const NO_ATTEMPT_ERRORS: readonly AttemptError[] = Object.freeze([]);

/** A job to record; the ledger adds status, attempt and times. */
export interface NewJob {
  readonly jobId: string;
  readonly planId?: string | null;
  readonly phase?: Phase | null;
  readonly task: string;
  readonly queue?: string;
  readonly priority?: number;
  /** Earliest start, as a time that someone named. Null or left out: at once. */
  readonly runAtMs?: number | null;
  /** Earliest start, counted from the ledger's own now; of the two the later one holds. */
  readonly delayMs?: number | null;
  readonly maxAttempts?: number;
  readonly timeoutMs?: number | null;
  readonly schemaVersion: number;
  readonly payloadJson: string;
  readonly requestId?: string | null;
  readonly idempotency?: Idempotency | null;
}

/** Makes a submit that is sent again find what it made the first time. */
export interface Idempotency {
  /** Names the job, in the whole ledger. Bounded and cleaned like every text: 255 characters. */
  readonly key: string;
  /** Tells whether another submit with this key asks for the same; say, a hash of task and input. */
  readonly fingerprint: string;
}

/** What makes a worker the owner of a running job. Every write by a worker carries it. */
export interface Claim {
  readonly jobId: string;
  readonly workerId: string;
  readonly attempt: number;
}
