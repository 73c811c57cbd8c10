/**
 * The jobs of a store that this process has opened: the HTTP API's answers without HTTP. Both ways
 * build them from the same parts, so that a command says the same whichever it takes.
 */
import type {
  Accepted,
  CancelAnswer,
  Jobs,
  JobsQuery,
  ResultAnswer,
  RetryAnswer,
  RetryOptions,
  SubmitAnswer,
  SubmitRequest,
} from "../client/jobs.js";
import {
  refusedFrom,
  type DiagnosticsView,
  type JobPageView,
  type JobView,
  type Refused,
} from "../client/replies.js";
import type { Config } from "../config/settings.js";
import type { Engine, Accepted as Recorded } from "../engine/api.js";
import { diagnosticsJson } from "../http/diagnostics-json.js";
import { refusalProblem } from "../http/errors.js";
import {
  alreadyFinished,
  notFinished,
  payloadGone,
  retryOfPlan,
  withoutResult,
} from "../http/job-problems.js";
import {
  FAULTS,
  jobJson,
  problemJson,
  STATES,
  statusOf,
  successJson,
  type Problem,
} from "../http/wire.js";
import { formatJobId, parseJobId, parsePlanId } from "../job/id.js";
import type { Job } from "../job/job.js";
import type { Status } from "../job/state.js";
import type { Clock } from "../runtime/clock.js";
import { misuse } from "./exit-code.js";

export class LedgerJobs implements Jobs {
  readonly #engine: Engine;
  readonly #clock: Clock;
  readonly #settings: Pick<Config, "asyncEnabled" | "workerTimeoutMs">;

  constructor(
    engine: Engine,
    clock: Clock,
    settings: Pick<Config, "asyncEnabled" | "workerTimeoutMs">,
  ) {
    this.#engine = engine;
    this.#clock = clock;
    this.#settings = settings;
  }

  async submit(request: SubmitRequest): Promise<SubmitAnswer> {
    const result = await this.#engine.submit(request);
    if (result.kind !== "accepted") return refusedBy(refusalProblem(result, "jobs"));
    return accepted(result);
  }

  async get(jobId: string): Promise<JobView | null> {
    const id = parseJobId(jobId);
    return this.#view(id === null ? null : await this.#engine.get(id));
  }

  async wait(jobId: string, timeoutMs: number): Promise<JobView | null> {
    const id = parseJobId(jobId);
    if (id === null) return null;
    return this.#view(await this.#engine.wait(id, { timeoutMs, until: "change" }));
  }

  async result(jobId: string): Promise<ResultAnswer> {
    const id = parseJobId(jobId);
    const found = id === null ? null : await this.#engine.result(id);
    if (found === null) return { kind: "unknown" };
    const { job, resultJson } = found;
    if (resultJson !== null)
      return { kind: "done", envelopeJson: successJson(job.requestId, resultJson) };
    return refusedBy(withoutResult(job));
  }

  async cancel(jobId: string): Promise<CancelAnswer> {
    const id = parseJobId(jobId);
    const outcome = id === null ? ({ kind: "unknown" } as const) : await this.#engine.cancel(id);
    if (outcome.kind === "unknown") return outcome;
    const { kind, job } = outcome;
    if (kind === "terminal") return refusedBy(alreadyFinished(job));
    return { kind, jobId: formatJobId(job.jobId), state: STATES[job.status] };
  }

  async retry(jobId: string, options?: RetryOptions): Promise<RetryAnswer> {
    const id = parseJobId(jobId);
    const outcome =
      id === null ? ({ kind: "unknown" } as const) : await this.#engine.retry(id, options);
    switch (outcome.kind) {
      case "accepted":
        return accepted(outcome);
      case "unknown":
        return outcome;
      case "not_finished":
        return refusedBy(notFinished(outcome.job));
      case "payload_gone":
        return refusedBy(payloadGone(jobId));
      case "of_plan":
        return refusedBy(retryOfPlan(outcome.job));
      case "invalid":
      case "full":
      case "not_ready":
      case "key_conflict":
        return refusedBy(refusalProblem(outcome, "jobs"));
      default:
        return outcome satisfies never;
    }
  }

  /** Up to `limit`: a ledger's page may be short although there is more. Ends with the table at the latest. */
  async list({ limit, task, plan, states, cursor }: JobsQuery): Promise<JobPageView> {
    const after = cursor === undefined ? undefined : parseJobId(cursor);
    if (after === null)
      throw misuse(`--cursor: ${JSON.stringify(cursor)} is no cursor that a page before printed`);
    const planId = plan === undefined ? undefined : parsePlanId(plan);
    if (planId === null) throw misuse(`--plan: ${JSON.stringify(plan)} is no plan's id`);
    const jobs: JobView[] = [];
    let next = after;
    do {
      const page = await this.#engine.list({
        limit: limit - jobs.length,
        ...(task === undefined ? {} : { task }),
        ...(planId === undefined ? {} : { planId }),
        ...(states === undefined ? {} : { statuses: states.flatMap(statusesOf) }),
        ...(next === undefined ? {} : { cursor: next }),
      });
      jobs.push(...page.jobs.map((job) => this.#viewOf(job)));
      next = page.nextCursor;
    } while (next !== undefined && jobs.length < limit);
    return next === undefined ? { jobs } : { jobs, next_cursor: formatJobId(next) };
  }

  /** Whether one lives is judged by the ledger's clock, which says when the job was submitted: now. */
  async isServed({ task, created_at: createdAt }: JobView): Promise<boolean> {
    const beatenSinceMs = Date.parse(createdAt) - this.#settings.workerTimeoutMs;
    const workers = await this.#engine.workers();
    return workers.some(
      ({ state, tasks, lastHeartbeatMs }) =>
        state === "running" && tasks.includes(task) && lastHeartbeatMs >= beatenSinceMs,
    );
  }

  async diagnose(): Promise<DiagnosticsView> {
    const diagnosis = await this.#engine.diagnose();
    return JSON.parse(diagnosticsJson(diagnosis, this.#settings.asyncEnabled)) as DiagnosticsView;
  }

  #view(job: Job | null): JobView | null {
    return job === null ? null : this.#viewOf(job);
  }

  #viewOf(job: Job): JobView {
    return JSON.parse(jobJson(job, this.#clock.nowMs())) as JobView;
  }
}

function accepted({ job, repeated }: Recorded): Accepted {
  return { kind: "accepted", jobId: formatJobId(job.jobId), repeated };
}

function statusesOf(state: string): Status[] {
  const status = statusOf(state);
  return status === undefined ? [] : [status];
}

function refusedBy(problem: Problem): Refused {
  const body = JSON.parse(problemJson(problem, "job", "")) as Record<string, unknown>;
  return refusedFrom(FAULTS[problem.fault].http, body, problem.retryAfterS ?? null);
}
