/**
 * The way in for jobs: checks the request, then records it within the bound. Concurrent submits share
 * one call of the ledger, whose check against the bound and record are one step; nothing here counts.
 */
import type { Job, NewJob } from "../job/job.js";
import { MAX_ATTEMPTS, MAX_DELAY_MS, MAX_PRIORITY, MAX_TIMEOUT_MS } from "../job/limits.js";
import { isTerminal } from "../job/state.js";
import type { Ledger, SubmitOutcome } from "../ledger/ledger.js";
import type { Clock } from "../runtime/clock.js";
import type { RegisteredTask, TaskRegistry } from "../task/registry.js";
import type { InputIssue } from "../task/schema.js";
import { acceptInput, type AcceptedInput } from "./accepted-input.js";
import type {
  EngineObserver,
  EngineSettings,
  Refusal,
  RetryResult,
  SubmitRequest,
  SubmitResult,
} from "./api.js";
import { Batcher } from "./batcher.js";
import type { CautiousAverage } from "./cautious-average.js";
import { retryAfterS } from "./retry-after.js";

const NOT_READY = { kind: "not_ready", reason: "shutting down" } as const satisfies Refusal;

/** What the ledger said. */
type Recorded = Extract<SubmitResult, { readonly kind: "accepted" | "full" }>;

export interface AdmissionPorts {
  readonly ledger: Ledger;
  readonly tasks: TaskRegistry;
  readonly settings: EngineSettings;
  readonly clock: Clock;
  readonly observer: EngineObserver;
  readonly runTimes: CautiousAverage;
  readonly newId: () => string;
  /** Called when a job is about to be recorded, and after it was. */
  readonly beforeSubmit: () => void;
  readonly accepted: (job: Job) => void;
}

export class Admission {
  readonly #ports: AdmissionPorts;
  readonly #batcher: Batcher<NewJob, SubmitOutcome>;
  #closed = false;

  constructor(ports: AdmissionPorts) {
    this.#ports = ports;
    const bound = { maxDepth: ports.settings.asyncMaxQueue };
    this.#batcher = new Batcher((jobs) => ports.ledger.submit(jobs, bound), {
      weigh: ({ payloadJson }) => payloadJson.length,
    });
  }

  /** From now on everything is answered with `not_ready`. */
  close(): void {
    this.#closed = true;
  }

  /** Rejects with a `LedgerError` when the job could not be recorded. */
  async submit(request: SubmitRequest): Promise<SubmitResult> {
    if (this.#isClosed()) return NOT_READY;
    const decision = acceptInput(this.#ports.tasks, request.task, request.input);
    const accepted = decision instanceof Promise ? await decision : decision;
    if (accepted.kind !== "input") return accepted;
    if (this.#isClosed()) return NOT_READY;
    const issues = optionIssues(request);
    if (issues.length > 0) return { kind: "invalid", empty: false, issues };
    return this.#record(this.#newJob(request, accepted));
  }

  /**
   * Records anew what has ended, as it was submitted then: its input is not checked again, so that a
   * process that knows no tasks can do it too. Rejects with a `LedgerError`.
   */
  async retry(jobId: string): Promise<RetryResult> {
    const { ledger } = this.#ports;
    if (this.#isClosed()) return NOT_READY;
    const [job] = await ledger.get([jobId]);
    if (job === undefined || job === null) return { kind: "unknown" };
    if (!isTerminal(job.status)) return { kind: "not_finished", job };
    const payloadJson = await ledger.payload(jobId);
    if (payloadJson === null) return { kind: "payload_gone", job };
    if (this.#isClosed()) return NOT_READY;
    const { planId, phase, task, queue, priority, maxAttempts, timeoutMs } = job;
    const { schemaVersion, requestId } = job;
    return this.#record({
      jobId: this.#ports.newId(),
      planId,
      phase,
      task,
      queue,
      priority,
      maxAttempts,
      timeoutMs,
      schemaVersion,
      payloadJson,
      requestId,
    });
  }

  async #record(job: NewJob): Promise<Recorded> {
    const { settings, observer, beforeSubmit, accepted } = this.#ports;
    if (settings.asyncMaxQueue <= 0) return this.#full(job.task);
    beforeSubmit();
    const outcome = await this.#batcher.add(job);
    if (outcome.kind === "full") return this.#full(job.task);
    observer.jobAccepted(job.task);
    accepted(outcome.job);
    return { kind: "accepted", job: outcome.job };
  }

  #isClosed(): boolean {
    return this.#closed;
  }

  #newJob(request: SubmitRequest, { task, payloadJson }: AcceptedInput): NewJob {
    const { delayMs, priority, timeoutMs, requestId } = request;
    return {
      jobId: this.#ports.newId(),
      task: task.name,
      schemaVersion: task.version,
      payloadJson,
      maxAttempts: maxAttemptsOf(request, task),
      priority: priority ?? 0,
      delayMs: delayMs ?? null,
      timeoutMs: timeoutMs ?? null,
      requestId: requestId ?? null,
    };
  }

  #full(task: string): Extract<Refusal, { readonly kind: "full" }> {
    const { settings, runTimes, observer } = this.#ports;
    observer.jobRefused(task);
    return {
      kind: "full",
      limit: settings.asyncMaxQueue,
      retryAfterS: retryAfterS(1, settings.maxWorkers, runTimes.value),
    };
  }
}

function maxAttemptsOf(request: SubmitRequest, task: RegisteredTask): number {
  return request.maxAttempts ?? task.maxAttempts;
}

function optionIssues(request: SubmitRequest): InputIssue[] {
  const issues: InputIssue[] = [];
  const check = (path: keyof SubmitRequest, least: number, most: number): void => {
    const value = request[path];
    if (value === undefined) return;
    const isWhole = typeof value === "number" && Number.isInteger(value);
    if (isWhole && value >= least && value <= most) return;
    issues.push({ path, message: `must be an integer from ${String(least)} to ${String(most)}` });
  };
  check("priority", -MAX_PRIORITY, MAX_PRIORITY);
  check("maxAttempts", 1, MAX_ATTEMPTS);
  check("delayMs", 0, MAX_DELAY_MS);
  check("timeoutMs", 1, MAX_TIMEOUT_MS);
  return issues;
}
