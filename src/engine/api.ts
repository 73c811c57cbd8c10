/**
 * What the engine offers to its callers: the HTTP app, the command line and the library. One
 * `Engine` serves one ledger in one process, with or without a worker.
 */
import type { Job, NewJob } from "../job/job.js";
import type {
  CancelOutcome,
  Counts,
  JobPage,
  JobResult,
  Ledger,
  ListQuery,
  SubmitOutcome,
  WorkerRecord,
} from "../ledger/ledger.js";
import type { TaskRegistry } from "../task/registry.js";
import type { InputIssue } from "../task/schema.js";
import type { Diagnosis } from "./diagnosis.js";

export interface EngineSettings {
  /** Longest wait of a job for a worker, ms; 0 = unlimited. */
  readonly asyncTimeoutMs: number;
  /** Bound on queued + running; <= 0 admits nothing. */
  readonly asyncMaxQueue: number;
  readonly asyncJobTtlMs: number;
  readonly asyncMaxCompleted: number;
  /** Slots of the pool, shared by synchronous requests and jobs. */
  readonly maxWorkers: number;
  readonly pollIntervalMs: number;
  readonly jobTimeoutMs: number;
  readonly workerTimeoutMs: number;
  /** Limit of a synchronous request, its wait included, and of a run, whatever task or job ask for; 0 = none. */
  readonly modelRunTimeoutMs: number;
  /** Longest waiting line of synchronous requests; 0 = unlimited. */
  readonly maxQueueDepth: number;
  /** How long a handler may go on after it was told to stop, before it is killed or abandoned. */
  readonly cancelGraceMs: number;
  /** How long `stop()` waits for running jobs. */
  readonly shutdownTimeoutMs: number;
}

/** Where things happen that someone may count; the engine reports, prom-client (http/metrics.ts) counts. Calls must not throw. */
export interface EngineObserver {
  /** A job is on record. Not told of those submitted within a transaction of the caller's, which may never be. */
  jobAccepted(task: string): void;
  jobRefused(task: string): void;
  /** A job started to run after it had waited `waitMs` in the queue. */
  jobStarted(task: string, waitMs: number): void;
  /** A job's attempt ended; `outcome` is a terminal status, or `retried`/`released` when it went back to the queue. */
  jobEnded(task: string, outcome: string, runMs: number): void;
  requestRefused(task: string): void;
  requestEnded(task: string, outcome: SyncOutcome["kind"], waitMs: number, runMs: number): void;
}

export interface SubmitRequest {
  readonly task: string;
  readonly input: unknown;
  readonly requestId?: string;
  readonly priority?: number;
  /** Not to start before this has passed, by the ledger's clock. */
  readonly delayMs?: number;
  /** Not to start before this time, ms since the Unix epoch, at most a year from now; not together with `delayMs`. */
  readonly runAtMs?: number;
  readonly maxAttempts?: number;
  readonly timeoutMs?: number;
  /** 1 to 255 characters: a submit with a key that has a job answers with that job. It lives as long as its job's record. */
  readonly idempotencyKey?: string;
}

export type Refusal =
  | { readonly kind: "unknown_task"; readonly task: string; readonly known: readonly string[] }
  /** `empty`: a required input is missing or empty, and nothing else is wrong. */
  | { readonly kind: "invalid"; readonly empty: boolean; readonly issues: readonly InputIssue[] }
  /** `retryAfterS`: whole seconds, 1 to 60, estimated from how fast slots come free. */
  | { readonly kind: "full"; readonly limit: number; readonly retryAfterS: number }
  /** Starting, draining, or cut off from the ledger. */
  | { readonly kind: "not_ready"; readonly reason: string };

export type SubmitRefusal =
  | Refusal
  /** The key belongs to a job of another task or input. */
  | { readonly kind: "key_conflict"; readonly key: string; readonly jobId: string };

/** `repeated`: it was recorded before, by a submit with the same key; the job as it is now. */
export interface Accepted {
  readonly kind: "accepted";
  readonly job: Job;
  readonly repeated: boolean;
}

export type SubmitResult = Accepted | SubmitRefusal;

export type SubmitManyResult =
  /** In the order of the requests. */
  | { readonly kind: "accepted"; readonly jobs: readonly Accepted[] }
  /** `index`: of the request that was refused, and all others with it. */
  | { readonly kind: "refused"; readonly index: number; readonly refusal: SubmitRefusal };

/** As the ledger answers, with the engine's word where there is no room. */
export type RecordResult =
  | Exclude<SubmitOutcome, { readonly kind: "full" }>
  | Extract<Refusal, { readonly kind: "full" | "not_ready" }>;

/** What became of the wish to run once more what has ended. */
export type RetryResult =
  /** The new job. */
  | Accepted
  | { readonly kind: "unknown" }
  | { readonly kind: "not_finished"; readonly job: Job }
  /** Its ledger forgets the payloads of what has ended. */
  | { readonly kind: "payload_gone"; readonly job: Job }
  /** It runs a phase of a plan, whose phases take turns: the plan is executed or applied anew instead. */
  | { readonly kind: "of_plan"; readonly job: Job }
  | Extract<SubmitRefusal, { readonly kind: "invalid" | "full" | "not_ready" | "key_conflict" }>;

/** As the key of a submit: a retry that is sent again with it is answered with the job that it made. */
export type RetryOptions = Pick<SubmitRequest, "idempotencyKey">;

export type SyncOutcome =
  | { readonly kind: "done"; readonly resultJson: string }
  | { readonly kind: "failed"; readonly errorMessage: string }
  | { readonly kind: "timeout"; readonly limitMs: number }
  /** The caller went away (its signal was aborted). */
  | { readonly kind: "cancelled" }
  | Refusal;

export interface SyncRequest {
  readonly task: string;
  readonly input: unknown;
  readonly requestId?: string;
  /** Aborted when the caller goes away: the run is told to stop and its slot comes back. */
  readonly signal?: LeaveSignal;
}

export interface WaitOptions {
  readonly timeoutMs: number;
  /** `change`: the state differs from the one at entry (at once when terminal). `end`: it is terminal. */
  readonly until: "change" | "end";
  readonly signal?: LeaveSignal;
}

/**
 * What a wait or a run needs of an `AbortSignal`, which is one; it adds one listener. Ten thousand of
 * those are felt, in time and memory.
 */
export interface LeaveSignal {
  readonly aborted: boolean;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

export interface HealthReport {
  /** `idle` when this process runs no worker. */
  readonly state: "starting" | "running" | "draining" | "stopped" | "idle";
  readonly workerId: string | null;
  readonly maxWorkers: number;
  readonly pollIntervalMs: number;
  readonly busy: number;
  /** Synchronous requests that wait for a slot. */
  readonly waiting: number;
  readonly processed: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly lastHeartbeatMs: number | null;
  /** Why the ledger is out of reach, as a sentence that anyone may read; null while it answers. */
  readonly ledgerFault: string | null;
}

export interface Engine {
  readonly tasks: TaskRegistry;
  /**
   * Validates, then records. Resolves when the job is on disk. Rejects with a `LedgerError` when it
   * could not be recorded.
   * @param into where to record it instead of the engine's ledger: in a transaction of the caller's, say.
   */
  submit(request: SubmitRequest, into?: Pick<Ledger, "submit">): Promise<SubmitResult>;
  /** Records all or none, in one step. At most 10,000. Otherwise as `submit`. */
  submitMany(
    requests: readonly SubmitRequest[],
    into?: Pick<Ledger, "submit">,
  ): Promise<SubmitManyResult>;
  /** Records a job of `ownTasks`, here or elsewhere, as it is given. Rejects with a `LedgerError`. */
  record(job: NewJob): Promise<RecordResult>;
  /** Runs a task now, on the shared pool, without a record. Never rejects for what the task does. */
  run(request: SyncRequest): Promise<SyncOutcome>;
  get(jobId: string): Promise<Job | null>;
  /** Null for an id unknown at entry; a job forgotten meanwhile answers with the last look. */
  wait(jobId: string, options: WaitOptions): Promise<Job | null>;
  result(jobId: string): Promise<JobResult | null>;
  cancel(jobId: string): Promise<CancelOutcome>;
  /** Records a new job with the payload and the options of one that has ended, whatever its end. Its key is not taken over. Rejects as `submit`. */
  retry(jobId: string, options?: RetryOptions): Promise<RetryResult>;
  list(query: ListQuery): Promise<JobPage>;
  counts(): Promise<Counts>;
  /** As recorded: one that was lost is among them until someone has noticed. */
  workers(): Promise<WorkerRecord[]>;
  health(): HealthReport;
  /** One look at the whole ledger, and what is wrong. Rejects with a `LedgerError` when it is out of reach. */
  diagnose(): Promise<Diagnosis>;
  /** Whether it can take work: started, not draining, and the ledger answers right now. `reason` is for anyone to read. */
  ready(): Promise<{ readonly ready: boolean; readonly reason: string | null }>;
  /** Idempotent. Rejects with a `LedgerError` when the worker could not be made known; then it can be tried again. */
  start(): Promise<void>;
  /** Idempotent. Stops claiming, signals what runs, waits up to the shutdown limit, records the ends. Does not close the ledger. */
  stop(): Promise<void>;
}
