/**
 * The jobs, wherever they are: what can be asked of them. `JobtableClient` asks a server; the command
 * line has a second one that asks a store. Ids are taken in both spellings and given as `job_` +
 * ULID. What is expected is answered; only what is out of reach or broken rejects.
 */
import type { State } from "../http/wire.js";
import type { DiagnosticsView, JobPageView, JobView, Refused } from "./replies.js";

export interface SubmitRequest {
  readonly task: string;
  readonly input: unknown;
  /** Echoed with the result; at most 200 characters. */
  readonly requestId?: string;
  /** One job per key: a second submit answers with the first one's job. */
  readonly idempotencyKey?: string;
  /** Larger is sooner, -1000 to 1000; default 0. */
  readonly priority?: number;
  /** Earliest start from now, ms. */
  readonly delayMs?: number;
  /** Earliest start, ms since the epoch; not with `delayMs`. */
  readonly runAtMs?: number;
  /** How often it may be tried in all; default: the task's. */
  readonly maxAttempts?: number;
  /** Limit of one run, ms; default: the task's. */
  readonly timeoutMs?: number;
}

export interface Accepted {
  readonly kind: "accepted";
  readonly jobId: string;
  /** It was accepted before, under the same idempotency key. */
  readonly repeated: boolean;
}

export type SubmitAnswer = Accepted | Refused;

/** As for a submit. */
export type RetryOptions = Pick<SubmitRequest, "idempotencyKey">;

export type RetryAnswer = Accepted | Refused | { readonly kind: "unknown" };

export type CancelAnswer =
  /** It was waiting, and has ended. */
  | { readonly kind: "cancelled"; readonly jobId: string; readonly state: State }
  /** It is running, and was told. */
  | { readonly kind: "requested"; readonly jobId: string; readonly state: State }
  | Refused
  | { readonly kind: "unknown" };

export type ResultAnswer =
  /** `envelopeJson`: `{"req_id","code":0,"msg":"success","data"}` as text. */
  { readonly kind: "done"; readonly envelopeJson: string } | Refused | { readonly kind: "unknown" };

export interface JobsQuery {
  readonly states?: readonly State[];
  readonly task?: string;
  /** `plan_` + ULID, or the ULID alone. */
  readonly plan?: string;
  /** 1 to 1000. */
  readonly limit: number;
  /** `next_cursor` of the page before. */
  readonly cursor?: string;
}

export interface Jobs {
  submit(request: SubmitRequest): Promise<SubmitAnswer>;
  /** Null where unknown. */
  get(jobId: string): Promise<JobView | null>;
  /**
   * Answers as soon as the state differs from the one at entry, at once for a job that has ended, or
   * when `timeoutMs` has passed, or somewhat sooner. Null where unknown.
   */
  wait(jobId: string, timeoutMs: number): Promise<JobView | null>;
  result(jobId: string): Promise<ResultAnswer>;
  cancel(jobId: string): Promise<CancelAnswer>;
  /** A new job with the payload and options of one that has ended. */
  retry(jobId: string, options?: RetryOptions): Promise<RetryAnswer>;
  /** Newest first. A page may be short while there is a `next_cursor`. */
  list(query: JobsQuery): Promise<JobPageView>;
  /** Whether a worker that lives runs the task of this job, which was submitted just now. */
  isServed(job: JobView): Promise<boolean>;
  /** Rejects where the ledger is out of reach. */
  diagnose(): Promise<DiagnosticsView>;
}
