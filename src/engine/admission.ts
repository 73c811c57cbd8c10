/**
 * The way in for jobs: checks the request, then records it within the bound. Concurrent submits share
 * one call of the ledger, whose check against the bound and record are one step; nothing here counts.
 */
import type { Idempotency, Job, NewJob } from "../job/job.js";
import { isTerminal } from "../job/state.js";
import type { Ledger, SubmitOutcome } from "../ledger/ledger.js";
import type { Clock } from "../runtime/clock.js";
import type { TaskRegistry } from "../task/registry.js";
import { acceptInput, type InputDecision } from "./accepted-input.js";
import type {
  Accepted,
  EngineObserver,
  EngineSettings,
  RecordResult,
  Refusal,
  RetryOptions,
  RetryResult,
  SubmitManyResult,
  SubmitRequest,
  SubmitResult,
} from "./api.js";
import { Batcher } from "./batcher.js";
import type { CautiousAverage } from "./cautious-average.js";
import { fingerprintOf } from "./fingerprint.js";
import { retryAfterS } from "./retry-after.js";
import { keyFault, optionIssues } from "./submit-options.js";
import {
  beyondBound,
  conflict,
  conflictWithin,
  isTooMany,
  TOO_MANY,
  type KeyConflict,
} from "./submit-refusals.js";

const NOT_READY = { kind: "not_ready", reason: "shutting down" } as const satisfies Refusal;

/** Where jobs are recorded. */
export type Recorder = Pick<Ledger, "submit">;

type Full = Extract<Refusal, { readonly kind: "full" }>;

const NO_ROOM = { kind: "full", depth: 0 } as const satisfies SubmitOutcome;

export interface AdmissionPorts {
  readonly ledger: Ledger;
  readonly tasks: TaskRegistry;
  readonly settings: EngineSettings;
  readonly clock: Clock;
  readonly observer: EngineObserver;
  readonly runTimes: CautiousAverage;
  readonly newId: () => string;
  /** Whether the event loop is at work most of the time. */
  readonly isBusy: () => boolean;
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
    this.#batcher = new Batcher((jobs) => ports.ledger.submit(jobs, bound), ports.clock, {
      weigh: ({ payloadJson }) => payloadJson.length,
      overlap: ports.isBusy,
    });
  }

  /** From now on everything is answered with `not_ready`. */
  close(): void {
    this.#closed = true;
  }

  /**
   * Rejects with a `LedgerError` when the job could not be recorded. Most submits take this way tens of
   * thousands of times a second: with one promise, which the list's answer resolves.
   * @param into left out: the ledger itself.
   */
  submit(request: SubmitRequest, into?: Recorder): Promise<SubmitResult> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed()) {
        resolve(NOT_READY);
        return;
      }
      const decision = acceptInput(this.#ports.tasks, request.task, request.input);
      if (decision instanceof Promise || into !== undefined) {
        resolve(this.#submitLater(request, decision, into));
        return;
      }
      const job = this.#jobOf(request, decision);
      if ("kind" in job) resolve(job);
      else if (this.#hasNoRoom(job)) resolve(this.#answer(job, NO_ROOM));
      else {
        this.#ports.beforeSubmit();
        this.#batcher.push({
          item: job,
          resolve: (outcome) => {
            resolve(this.#answer(job, outcome));
          },
          reject,
        });
      }
    });
  }

  async #submitLater(
    request: SubmitRequest,
    decision: InputDecision | Promise<InputDecision>,
    into: Recorder | undefined,
  ): Promise<SubmitResult> {
    const job = this.#jobOf(request, await decision);
    if ("kind" in job) return job;
    return this.#answer(job, await this.#record(job, into), into !== undefined);
  }

  /** All or nothing. @param into as for `submit`. */
  async submitMany(requests: readonly SubmitRequest[], into?: Recorder): Promise<SubmitManyResult> {
    const jobs: NewJob[] = [];
    let chars = 0;
    for (const [index, request] of requests.entries()) {
      if (this.#isClosed()) return { kind: "refused", index, refusal: NOT_READY };
      const job = this.#jobOf(
        request,
        await acceptInput(this.#ports.tasks, request.task, request.input),
      );
      if ("kind" in job) return { kind: "refused", index, refusal: job };
      chars += job.payloadJson.length;
      if (isTooMany(index + 1, chars)) return { kind: "refused", index, refusal: TOO_MANY };
      jobs.push(job);
    }
    if (jobs.length === 0) return { kind: "accepted", jobs: [] };
    const { asyncMaxQueue: maxDepth } = this.#ports.settings;
    const certain = jobs.filter(({ idempotency }) => idempotency === null).length;
    // Trying again would never help.
    if (maxDepth > 0 && certain > maxDepth)
      return { kind: "refused", index: maxDepth, refusal: beyondBound(certain, maxDepth) };
    this.#ports.beforeSubmit();
    const bound = { maxDepth, whole: true };
    const outcomes = await (into ?? this.#ports.ledger).submit(jobs, bound);
    return this.#answerMany(jobs, outcomes, into !== undefined);
  }

  /** What no task's schema is asked about. Rejects with a `LedgerError`. */
  async record(job: NewJob): Promise<RecordResult> {
    if (this.#isClosed()) return NOT_READY;
    const outcome = await this.#record(job);
    if (outcome.kind === "full") return this.#full(job.task);
    this.#answer(job, outcome);
    return outcome;
  }

  /**
   * Records anew what has ended, as it was submitted then: its input is not checked again, so that a
   * process that knows no tasks can do it too. Rejects with a `LedgerError`.
   */
  async retry(jobId: string, { idempotencyKey: key }: RetryOptions = {}): Promise<RetryResult> {
    const { ledger } = this.#ports;
    if (this.#isClosed()) return NOT_READY;
    const message = key === undefined ? null : keyFault(key);
    if (message !== null)
      return { kind: "invalid", empty: false, issues: [{ path: "idempotencyKey", message }] };
    const [old] = await ledger.get([jobId]);
    if (old === undefined || old === null) return { kind: "unknown" };
    if (old.planId !== null) return { kind: "of_plan", job: old };
    if (!isTerminal(old.status)) return { kind: "not_finished", job: old };
    const payloadJson = await ledger.payload(jobId);
    if (payloadJson === null) {
      // Forgotten as a whole since the look, or the payload alone.
      const [still] = await ledger.get([jobId]);
      return still === undefined || still === null
        ? { kind: "unknown" }
        : { kind: "payload_gone", job: old };
    }
    if (this.#isClosed()) return NOT_READY;
    const { task, queue, priority, maxAttempts, timeoutMs, requestId } = old;
    const job: NewJob = {
      jobId: this.#ports.newId(),
      task,
      queue,
      priority,
      maxAttempts,
      timeoutMs,
      schemaVersion: old.schemaVersion,
      payloadJson,
      requestId,
      idempotency: idempotencyOf(key, payloadJson),
    };
    return this.#answer(job, await this.#record(job));
  }

  #isClosed(): boolean {
    return this.#closed;
  }

  /** The job to record, or why there is none. */
  #jobOf(request: SubmitRequest, decision: InputDecision): NewJob | Refusal {
    if (decision.kind !== "input") return decision;
    if (this.#isClosed()) return NOT_READY;
    const nowMs = this.#ports.clock.nowMs();
    const issues = optionIssues(request, nowMs);
    if (issues.length > 0) return { kind: "invalid", empty: false, issues };
    const { task, payloadJson } = decision;
    const { delayMs, runAtMs, priority, timeoutMs, requestId, idempotencyKey } = request;
    return {
      jobId: this.#ports.newId(),
      task: task.name,
      schemaVersion: task.version,
      payloadJson,
      maxAttempts: request.maxAttempts ?? task.maxAttempts,
      priority: priority ?? 0,
      delayMs: delayMs ?? null,
      // What is due already queues up behind those that were due before.
      runAtMs: runAtMs === undefined || runAtMs <= nowMs ? null : runAtMs,
      timeoutMs: timeoutMs ?? null,
      requestId: requestId ?? null,
      idempotency: idempotencyOf(idempotencyKey, payloadJson),
    };
  }

  #record(job: NewJob, into?: Recorder): Promise<SubmitOutcome> | SubmitOutcome {
    if (this.#hasNoRoom(job)) return NO_ROOM;
    this.#ports.beforeSubmit();
    if (into === undefined) return this.#batcher.add(job);
    const { asyncMaxQueue: maxDepth } = this.#ports.settings;
    return into.submit([job], { maxDepth }).then(([outcome]) => outcome ?? NO_ROOM);
  }

  /** Known without a look. A key may still find its job. */
  #hasNoRoom({ idempotency = null }: NewJob): boolean {
    return this.#ports.settings.asyncMaxQueue <= 0 && idempotency === null;
  }

  /** @param tentative within a transaction that may yet be rolled back: then nobody counts it as recorded. */
  #answer(job: NewJob, outcome: SubmitOutcome, tentative = false): Accepted | Full | KeyConflict {
    switch (outcome.kind) {
      case "accepted":
        if (!tentative) this.#ports.observer.jobAccepted(outcome.job.task);
        this.#ports.accepted(outcome.job);
        return { kind: "accepted", job: outcome.job, repeated: false };
      case "repeated":
        return { kind: "accepted", job: outcome.job, repeated: true };
      case "conflict":
        return conflict(job, outcome.job);
      case "full":
        return this.#full(job.task);
      default:
        return outcome satisfies never;
    }
  }

  /** Where one was refused, none was recorded. */
  #answerMany(
    jobs: readonly NewJob[],
    outcomes: readonly SubmitOutcome[],
    tentative: boolean,
  ): SubmitManyResult {
    // What conflicts does so whatever room there is.
    for (const kind of ["conflict", "full"] as const) {
      const index = outcomes.findIndex((outcome) => outcome.kind === kind);
      const [job, outcome] = [jobs[index], outcomes[index]];
      if (job === undefined || outcome === undefined) continue;
      const refusal = conflictWithin(jobs, outcome) ?? this.#answer(job, outcome);
      if (refusal.kind !== "accepted") return { kind: "refused", index, refusal };
    }
    const answers = jobs.map((job, index) =>
      this.#answer(job, outcomes[index] ?? NO_ROOM, tentative),
    );
    return { kind: "accepted", jobs: answers.filter((answer) => answer.kind === "accepted") };
  }

  #full(task: string): Full {
    const { settings, runTimes, observer } = this.#ports;
    observer.jobRefused(task);
    return {
      kind: "full",
      limit: settings.asyncMaxQueue,
      retryAfterS: retryAfterS(1, settings.maxWorkers, runTimes.value),
    };
  }
}

function idempotencyOf(key: string | undefined, payloadJson: string): Idempotency | null {
  return key === undefined ? null : { key, fingerprint: fingerprintOf(payloadJson) };
}
