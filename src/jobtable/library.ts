/** The library's calls, on an engine that opens at the first of them. jobtable.ts says how it behaves as a whole. */
import type {
  Engine,
  HealthReport,
  SubmitRefusal,
  SubmitRequest,
  SyncOutcome,
} from "../engine/api.js";
import { invalidInput, refusalError } from "../engine/refusal-error.js";
import { JobtableError } from "../job/errors.js";
import { formatJobId, parseJobId, parsePlanId } from "../job/id.js";
import type { Job } from "../job/job.js";
import { MAX_PAGE } from "../job/limits.js";
import type { CancelOutcome, Counts, JobPage, Ledger, ListQuery } from "../ledger/ledger.js";
import type { Within } from "../ledger/within.js";
import type { Task } from "../task/task.js";
import {
  TaskFailed,
  type InTransaction,
  type InputOf,
  type JobOf,
  type JobRef,
  type Jobtable,
  type JobsOf,
  type NameOf,
  type Outcome,
  type OutputOf,
  type RetryOutcome,
  type Submission,
  type SubmitOptions,
  type WaitForOptions,
} from "./api.js";
import { LibraryPlans, type OpenPlans } from "./library-plans.js";
import type { JobtablePlans } from "./plan-api.js";

const DEFAULT_WAIT_MS = 30_000;
const DEFAULT_PAGE = 100;
const UNKNOWN = { kind: "unknown" } as const;

export interface Opened {
  readonly engine: Engine;
  readonly ledger: Ledger;
  readonly within: Within;
  readonly plans: OpenPlans;
  /** For when the engine has started: deals with what dead processes left of plans; the answer ends that. */
  readonly sweepPlans: (() => () => Promise<void>) | null;
}

export class LibraryJobtable<Tasks extends readonly Task[]> implements Jobtable<Tasks> {
  readonly #open: () => Promise<Opened>;
  #opened: Promise<Opened> | null = null;
  #stopping: Promise<void> | null = null;
  #endSweep: (() => Promise<void>) | null = null;
  readonly plans: JobtablePlans = new LibraryPlans(() => this.opened());

  constructor(open: () => Promise<Opened>) {
    this.#open = open;
  }

  async submit<Name extends NameOf<Tasks>>(
    task: Name,
    input: InputOf<Tasks, Name>,
    { client, ...options }: SubmitOptions & InTransaction = {},
  ): Promise<JobOf<Name>> {
    const { engine, within } = await this.opened();
    const into = client === undefined ? undefined : within(client);
    const result = await engine.submit({ ...options, task, input }, into);
    if (result.kind !== "accepted") throw refusalError(result);
    return result.job as JobOf<Name>;
  }

  async submitMany<Submissions extends readonly Submission<Tasks>[]>(
    submissions: readonly [...Submissions],
    { client }: InTransaction = {},
  ): Promise<JobsOf<Submissions>> {
    const { engine, within } = await this.opened();
    const into = client === undefined ? undefined : within(client);
    const requests: readonly SubmitRequest[] = submissions;
    const result = await engine.submitMany(requests, into);
    if (result.kind === "refused") throw placed(result.refusal, result.index);
    return result.jobs.map(({ job }) => job) as JobsOf<Submissions>;
  }

  async run<Name extends NameOf<Tasks>>(
    task: Name,
    input: InputOf<Tasks, Name>,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<OutputOf<Tasks, Name>> {
    const engine = await this.#engine();
    return JSON.parse(resultJsonOf(await engine.run({ ...options, task, input }))) as OutputOf<
      Tasks,
      Name
    >;
  }

  async get(job: JobRef): Promise<Job | null> {
    const id = idOf(job);
    return id === null ? null : (await this.#engine()).get(id);
  }

  async wait(job: JobRef, options: WaitForOptions = {}): Promise<Job | null> {
    const id = idOf(job);
    if (id === null) return null;
    const { timeoutMs = DEFAULT_WAIT_MS, until = "end" } = options;
    return (await this.#engine()).wait(id, { ...options, timeoutMs, until });
  }

  async result<Output>(ref: JobRef, task?: string): Promise<Outcome<Output> | null> {
    const id = idOf(ref);
    const found = id === null ? null : await (await this.#engine()).result(id);
    if (found === null) return null;
    const { job, resultJson } = found;
    if (task !== undefined && job.task !== task)
      throw invalidInput(
        `${formatJobId(job.jobId)} is a job of task "${job.task}", not of "${task}"`,
      );
    if (resultJson === null) return { job, output: undefined };
    return { job, output: JSON.parse(resultJson) as Output };
  }

  async cancel(job: JobRef): Promise<CancelOutcome> {
    const id = idOf(job);
    return id === null ? UNKNOWN : (await this.#engine()).cancel(id);
  }

  async retry(job: JobRef, options?: Pick<SubmitOptions, "idempotencyKey">): Promise<RetryOutcome> {
    const id = idOf(job);
    const outcome = id === null ? UNKNOWN : await (await this.#engine()).retry(id, options);
    switch (outcome.kind) {
      case "invalid":
      case "full":
      case "not_ready":
      case "key_conflict":
        throw refusalError(outcome);
      case "accepted":
      case "unknown":
      case "not_finished":
      case "payload_gone":
      case "of_plan":
        return outcome;
      default:
        return outcome satisfies never;
    }
  }

  async list(query: Partial<ListQuery> = {}): Promise<JobPage> {
    const checked = listQuery(query);
    return (await this.#engine()).list(checked);
  }

  async counts(): Promise<Counts> {
    return (await this.#engine()).counts();
  }

  async health(): Promise<HealthReport> {
    return (await this.#engine()).health();
  }

  async start(): Promise<void> {
    const { engine, sweepPlans } = await this.opened();
    await engine.start();
    if (this.#stopping === null) this.#endSweep ??= sweepPlans?.() ?? null;
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    // A store that could not be opened has nothing to stop; whoever opened it was told.
    const opened = await this.#opened?.catch(() => null);
    if (opened === undefined || opened === null) return;
    try {
      await this.#endSweep?.();
      await opened.engine.stop();
    } finally {
      await opened.ledger.close();
    }
  }

  async #engine(): Promise<Engine> {
    return (await this.opened()).engine;
  }

  /** Opens at the first call. */
  opened(): Promise<Opened> {
    if (this.#stopping !== null)
      return Promise.reject(new JobtableError("not_ready", "this jobtable was stopped"));
    if (this.#opened !== null) return this.#opened;
    const opening = this.#open();
    this.#opened = opening;
    // Another call may succeed once what was in the way is gone.
    opening.catch(() => (this.#opened = null));
    return opening;
  }
}

function idOf(job: JobRef): string | null {
  return parseJobId(typeof job === "string" ? job : job.jobId);
}

/** Says of which one of many. */
function placed(refusal: SubmitRefusal, index: number): JobtableError {
  const { code, message } = refusalError(refusal);
  const isOfAll = refusal.kind === "full" || refusal.kind === "not_ready";
  return new JobtableError(code, isOfAll ? message : `[${String(index)}]: ${message}`);
}

function listQuery({
  limit = DEFAULT_PAGE,
  cursor,
  planId,
  ...others
}: Partial<ListQuery>): ListQuery {
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE)
    throw invalidInput(
      `limit: must be an integer from 1 to ${String(MAX_PAGE)}, got ${String(limit)}`,
    );
  const plan = typeof planId === "string" ? parsePlanId(planId) : planId;
  if (plan === null) throw invalidInput("planId: not a plan's id");
  const rest = plan === undefined ? others : { ...others, planId: plan };
  if (cursor === undefined) return { ...rest, limit };
  const after = typeof cursor === "string" ? parseJobId(cursor) : null;
  if (after === null) throw invalidInput("cursor: not a nextCursor of a page before");
  return { ...rest, limit, cursor: after };
}

function resultJsonOf(outcome: SyncOutcome): string {
  switch (outcome.kind) {
    case "done":
      return outcome.resultJson;
    case "failed":
      throw new TaskFailed("failed", outcome.errorMessage);
    case "timeout":
      throw new TaskFailed("timeout", `TimeLimit: exceeded ${String(outcome.limitMs)} ms`);
    case "cancelled":
      throw new TaskFailed("cancelled", "Cancelled: the caller left");
    case "unknown_task":
    case "invalid":
    case "full":
    case "not_ready":
      throw refusalError(outcome);
    default:
      return outcome satisfies never;
  }
}
