/** What the library offers, typed by the tasks that it was given. jobtable.ts says how it behaves as a whole. */
import type { EngineSettings, HealthReport, RetryResult, SubmitRefusal } from "../engine/api.js";
import type { Job } from "../job/job.js";
import type { CancelOutcome, Counts, JobPage, ListQuery } from "../ledger/ledger.js";
import type { TransactionClient } from "../ledger/within.js";
import type { Logger } from "../runtime/logger.js";
import type { Task } from "../task/task.js";
import type { JobtablePlans } from "./plan-api.js";

export interface JobtableOptions<Tasks extends readonly Task[]> extends Partial<EngineSettings> {
  /** They run in this process. */
  readonly tasks: Tasks;
  /** `memory`, `sqlite:PATH` or `postgres://...`; default `sqlite:.jobtable/jobs.db`, as for the command line. */
  readonly store?: string;
  /** Whether `start` runs jobs here, or only maintains the store. Default true. */
  readonly worker?: boolean;
  /**
   * Whether the worker here runs plans, whose steps are commands with the rights of this process.
   * Default false: then whoever else works on the store runs them.
   */
  readonly plans?: boolean;
  /** Default: silent. */
  readonly logger?: Logger;
}

export interface SubmitOptions {
  /**
   * Sent again with its key, a submit answers with the job that it made, whatever has become of it: one
   * key, one job, in the whole store, as long as the job's record is kept. 1 to 255 characters.
   */
  readonly idempotencyKey?: string;
  /** Echoed with the job; at most 200 characters. */
  readonly requestId?: string;
  /** Larger is sooner, -1000 to 1000; default 0. */
  readonly priority?: number;
  /** Earliest start from now, whole ms, at most a year; default 0. */
  readonly delayMs?: number;
  /** Earliest start, whole ms since the Unix epoch, at most a year from now; not together with `delayMs`. */
  readonly runAtMs?: number;
  /** How often it may be tried in all, 1 to 100; default: the task's. */
  readonly maxAttempts?: number;
  /** Limit of one run, whole ms, 1 to 30 days; default: the task's. Never more than `modelRunTimeoutMs`. */
  readonly timeoutMs?: number;
}

export interface InTransaction {
  /**
   * A `pg` client of yours with an open transaction in the store's database: the job is recorded by that
   * transaction, so it runs once you commit, and never existed when you roll back. Only for a
   * PostgreSQL store. From here to your commit every other submit, claim and end of a job waits for
   * you: submit last, and commit at once.
   */
  readonly client?: TransactionClient;
}

export interface WaitForOptions {
  /** ms; default 30000. */
  readonly timeoutMs?: number;
  /** `end` (default): until it has ended. `change`: until its state is another one. */
  readonly until?: "change" | "end";
  readonly signal?: AbortSignal;
}

export interface Outcome<Output> {
  readonly job: Job;
  /** What the handler returned; undefined unless the job succeeded. */
  readonly output: Output | undefined;
}

/** What became of the wish to run once more what has ended: `accepted` has the new job. */
export type RetryOutcome = Exclude<RetryResult, SubmitRefusal>;

export type NameOf<Tasks extends readonly Task[]> = Tasks[number]["name"];
type Named<Tasks extends readonly Task[], Name> = Extract<Tasks[number], { readonly name: Name }>;
export type InputOf<Tasks extends readonly Task[], Name> =
  Named<Tasks, Name> extends Task<string, infer Input> ? Input : never;
export type OutputOf<Tasks extends readonly Task[], Name> =
  Named<Tasks, Name> extends { run(...args: never): infer Returned } ? Awaited<Returned> : never;

/** A job whose task is known to the compiler, and with it the type of its output. */
export type JobOf<Name extends string> = Job & { readonly task: Name };

/** Names a job: its record, or its id in either spelling. */
export type JobRef = string | Pick<Job, "jobId">;

/** One of many jobs: the task, its input, and options of its own. */
export type Submission<Tasks extends readonly Task[]> = {
  readonly [Name in NameOf<Tasks>]: SubmitOptions & {
    readonly task: Name;
    readonly input: InputOf<Tasks, Name>;
  };
}[NameOf<Tasks>];

/** The jobs of a list of submissions, each with its task. */
export type JobsOf<Submissions extends readonly { readonly task: string }[]> = {
  -readonly [Index in keyof Submissions]: JobOf<Submissions[Index]["task"]>;
};

export interface Jobtable<Tasks extends readonly Task[]> {
  /** The plans of the store, whoever runs them. Loaded at the first call. */
  readonly plans: JobtablePlans;
  /**
   * Records a job; resolves when it is on disk.
   * @throws JobtableError `unknown_task`, `invalid_input`, `key_conflict`, `queue_full`,
   * `invalid_config` for a `client` that can't be, and as `get`.
   */
  submit<Name extends NameOf<Tasks>>(
    task: Name,
    input: InputOf<Tasks, Name>,
    options?: SubmitOptions & InTransaction,
  ): Promise<JobOf<Name>>;
  /**
   * Records all of these jobs in one step, or none of them. At most 10,000, with inputs of 64 MiB in
   * all. The jobs come in the order of the submissions.
   * @throws JobtableError as `submit`; what is wrong with one starts with its place, `[2]: `.
   */
  submitMany<Submissions extends readonly Submission<Tasks>[]>(
    submissions: readonly [...Submissions],
    options?: InTransaction,
  ): Promise<JobsOf<Submissions>>;
  /**
   * Runs a task now, on the same slots, without a record.
   * @throws TaskFailed when it fails, its time is up or its caller leaves.
   * @throws JobtableError as `submit`; `queue_full` where too many wait for a slot.
   */
  run<Name extends NameOf<Tasks>>(
    task: Name,
    input: InputOf<Tasks, Name>,
    options?: { readonly signal?: AbortSignal },
  ): Promise<OutputOf<Tasks, Name>>;
  /**
   * One look; null where unknown.
   * @throws JobtableError `invalid_config` (the settings or the store), `ledger_...`; `not_ready` after `stop`.
   */
  get(job: JobRef): Promise<Job | null>;
  /** Waits for the end (or a change) of a job; when the time is up, its last state. Null where unknown. @throws as `get`. */
  wait(job: JobRef, options?: WaitForOptions): Promise<Job | null>;
  /**
   * The job with its output; null where unknown. A job that `submit` gave has the type of its task's
   * output. For an id alone, name the task: then the output has its type, and a job of another task is
   * an error. Without a name the output may be anything.
   * @throws JobtableError `invalid_input` for a job of another task, and as `get`.
   */
  result<Name extends NameOf<Tasks>>(
    job: JobOf<Name>,
  ): Promise<Outcome<OutputOf<Tasks, Name>> | null>;
  result<Name extends NameOf<Tasks>>(
    job: JobRef,
    task: Name,
  ): Promise<Outcome<OutputOf<Tasks, Name>> | null>;
  result(job: JobRef): Promise<Outcome<unknown> | null>;
  /** @throws as `get`. */
  cancel(job: JobRef): Promise<CancelOutcome>;
  /**
   * Records a new job with the input and the options of one that has ended, whatever its end.
   * @throws JobtableError `queue_full`, `invalid_input` and `key_conflict` for a key, and as `get`.
   */
  retry(job: JobRef, options?: Pick<SubmitOptions, "idempotencyKey">): Promise<RetryOutcome>;
  /**
   * Newest first, `limit` (1 to 1000, default 100) to a page; `cursor` is `nextCursor` of the page before.
   * @throws JobtableError `invalid_input` for another limit or cursor, and as `get`.
   */
  list(query?: Partial<ListQuery>): Promise<JobPage>;
  counts(): Promise<Counts>;
  health(): Promise<HealthReport>;
  /**
   * Begins to run jobs here (`worker: false`: to maintain the store). Idempotent; can be tried again
   * when it failed.
   * @throws as `get`.
   */
  start(): Promise<void>;
  /**
   * Ends in order what runs (`shutdownTimeoutMs`), then closes the store. Idempotent.
   * @throws LedgerError when the store could not be closed in order.
   */
  stop(): Promise<void>;
}

export interface TestJobtableOptions<
  Tasks extends readonly Task[],
> extends Partial<EngineSettings> {
  readonly tasks: Tasks;
  /** Default: silent. */
  readonly logger?: Logger;
}

/**
 * A jobtable for the tests of the program that uses it; see `createTestJobtable`. It has no plans: those
 * calls are `invalid_config`.
 */
export interface TestJobtable<Tasks extends readonly Task[]> extends Jobtable<Tasks> {
  /**
   * Resolves when no job waits or runs. What is due later (a delay, a pause before the next attempt)
   * is not waited for: the clock jumps to it.
   * @param options `timeoutMs`: default 4000, below the 5 s after which test runners give up.
   * @throws Error that names what is left when the time is up.
   */
  idle(options?: { readonly timeoutMs?: number }): Promise<void>;
}

/** What `run` rejects with when the task failed, its time was up, or its caller left: no `JobtableError`. */
export class TaskFailed extends Error {
  readonly outcome: "failed" | "timeout" | "cancelled";

  constructor(outcome: TaskFailed["outcome"], message: string) {
    super(message);
    this.name = "TaskFailed";
    this.outcome = outcome;
  }
}
