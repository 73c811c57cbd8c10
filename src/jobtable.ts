/**
 * The library: jobs in the program that uses it, typed by its tasks.
 *
 *     const jobtable = createJobtable({ store: "sqlite:jobs.db", tasks: [ocr] });
 *     await jobtable.start();
 *     const { jobId } = await jobtable.submit("ocr", { img_data });
 *     await jobtable.wait(jobId);
 *     const result = await jobtable.result<"ocr">(jobId);
 *     await jobtable.stop();
 *
 * The store opens, and the settings are checked, at the first call. Without `start` jobs can be
 * submitted and looked at, and whoever else works on the store runs them. Ids are taken in both
 * spellings, `job_` + ULID and the bare ULID; records carry the bare one.
 *
 * What goes wrong is a `JobtableError` whose `code` says what it was: `invalid_config`,
 * `invalid_task`, `invalid_input`, `unknown_task`, `queue_full`, `not_ready`, `ledger_...`. Only `run`
 * rejects with something else as well: a `TaskFailed`, which is no `JobtableError`, when the task was
 * run and gave no output. Texts that can't be an id name a job that is unknown.
 */
import type { Engine, HealthReport, SyncOutcome } from "./engine/api.js";
import { invalidInput, refusalError } from "./engine/refusal-error.js";
import { JobtableError } from "./job/errors.js";
import { parseJobId } from "./job/id.js";
import type { Job } from "./job/job.js";
import { MAX_PAGE } from "./job/limits.js";
import {
  TaskFailed,
  type InputOf,
  type Jobtable,
  type JobtableOptions,
  type NameOf,
  type Outcome,
  type OutputOf,
  type RetryOutcome,
  type SubmitOptions,
  type WaitForOptions,
} from "./jobtable/api.js";
import type { CancelOutcome, Counts, JobPage, Ledger, ListQuery } from "./ledger/ledger.js";
import { defineInline } from "./task/definition.js";
import { createTaskRegistry } from "./task/registry.js";
import type { Task } from "./task/task.js";

const DEFAULT_WAIT_MS = 30_000;
const DEFAULT_PAGE = 100;
const UNKNOWN = { kind: "unknown" } as const;

/** @throws JobtableError `invalid_task`: everything about the tasks is checked here. */
export function createJobtable<const Tasks extends readonly Task[]>(
  options: JobtableOptions<Tasks>,
): Jobtable<Tasks> {
  return new LibraryJobtable(options);
}

interface Opened {
  readonly engine: Engine;
  readonly ledger: Ledger;
}

class LibraryJobtable<Tasks extends readonly Task[]> implements Jobtable<Tasks> {
  readonly #open: () => Promise<Opened>;
  #opened: Promise<Opened> | null = null;
  #stopping: Promise<void> | null = null;

  constructor({ tasks, store, worker = true, logger, ...settings }: JobtableOptions<Tasks>) {
    const registry = createTaskRegistry(defineInline(tasks));
    this.#open = async () => {
      const { openEngine } = await import("./compose.js");
      return openEngine({ store, tasks: registry, settings, worker, logger });
    };
  }

  async submit<Name extends NameOf<Tasks>>(
    task: Name,
    input: InputOf<Tasks, Name>,
    options: SubmitOptions = {},
  ): Promise<Job> {
    const engine = await this.#engine();
    const result = await engine.submit({ ...options, task, input });
    if (result.kind === "accepted") return result.job;
    throw refusalError(result);
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

  async get(jobId: string): Promise<Job | null> {
    const id = parseJobId(jobId);
    return id === null ? null : (await this.#engine()).get(id);
  }

  async wait(jobId: string, options: WaitForOptions = {}): Promise<Job | null> {
    const id = parseJobId(jobId);
    if (id === null) return null;
    const { timeoutMs = DEFAULT_WAIT_MS, until = "end" } = options;
    return (await this.#engine()).wait(id, { ...options, timeoutMs, until });
  }

  async result<Name extends NameOf<Tasks>>(
    jobId: string,
  ): Promise<Outcome<OutputOf<Tasks, Name>> | null> {
    const id = parseJobId(jobId);
    const found = id === null ? null : await (await this.#engine()).result(id);
    if (found === null) return null;
    const { job, resultJson } = found;
    if (resultJson === null) return { job, output: undefined };
    return { job, output: JSON.parse(resultJson) as OutputOf<Tasks, Name> };
  }

  async cancel(jobId: string): Promise<CancelOutcome> {
    const id = parseJobId(jobId);
    return id === null ? UNKNOWN : (await this.#engine()).cancel(id);
  }

  async retry(jobId: string): Promise<RetryOutcome> {
    const id = parseJobId(jobId);
    const outcome = id === null ? UNKNOWN : await (await this.#engine()).retry(id);
    if (outcome.kind === "full" || outcome.kind === "not_ready") throw refusalError(outcome);
    return outcome;
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
    await (await this.#engine()).start();
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
      await opened.engine.stop();
    } finally {
      await opened.ledger.close();
    }
  }

  async #engine(): Promise<Engine> {
    if (this.#opened === null) {
      if (this.#stopping !== null)
        throw new JobtableError("not_ready", "this jobtable was stopped");
      const opening = this.#open();
      this.#opened = opening;
      // Another call may succeed once what was in the way is gone.
      opening.catch(() => (this.#opened = null));
    }
    return (await this.#opened).engine;
  }
}

function listQuery({ limit = DEFAULT_PAGE, cursor, ...rest }: Partial<ListQuery>): ListQuery {
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE)
    throw invalidInput(
      `limit: must be an integer from 1 to ${String(MAX_PAGE)}, got ${String(limit)}`,
    );
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
