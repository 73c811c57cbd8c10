/**
 * Synchronous requests: run now, on the pool that the jobs use, and leave no record. The time limit
 * includes the wait for a slot. An answer goes out as soon as it is known, also where the handler
 * goes on after its time was up or its caller left: then the slot stays taken until the handler is
 * really gone or was killed.
 */
import type { Clock } from "../runtime/clock.js";
import type { Logger } from "../runtime/logger.js";
import type { TaskRegistry } from "../task/registry.js";
import { acceptInput, type AcceptedInput } from "./accepted-input.js";
import type { EngineObserver, EngineSettings, SyncOutcome, SyncRequest } from "./api.js";
import { Attempt, runLimitMs } from "./attempt.js";
import type { CautiousAverage } from "./cautious-average.js";
import { GONE_MESSAGE, type StopCause } from "./ending.js";
import { InFlight } from "./in-flight.js";
import type { Pool, Slot } from "./pool.js";
import { retryAfterS } from "./retry-after.js";
import type { RunListener, RunOutcome, Runner } from "./runner/runner.js";

export interface SyncRequestsPorts {
  readonly tasks: TaskRegistry;
  readonly runner: Runner;
  readonly pool: Pool;
  readonly settings: EngineSettings;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly observer: EngineObserver;
  readonly runTimes: CautiousAverage;
}

const SHUTTING_DOWN: SyncOutcome = { kind: "not_ready", reason: "shutting down" };

export class SyncRequests {
  readonly #ports: SyncRequestsPorts;
  readonly #waiting = new Set<SyncRun>();
  readonly #running = new Set<SyncRun>();
  readonly #open = new InFlight();
  #closed = false;

  constructor(ports: SyncRequestsPorts) {
    this.#ports = ports;
  }

  /** How many wait for a slot. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Never rejects for what the task does. */
  async run(request: SyncRequest): Promise<SyncOutcome> {
    if (this.#isClosed()) return SHUTTING_DOWN;
    const decision = acceptInput(this.#ports.tasks, request.task, request.input);
    const accepted = decision instanceof Promise ? await decision : decision;
    if (accepted.kind !== "input") return accepted;
    if (this.#isClosed()) return SHUTTING_DOWN;
    if (this.#isFull()) return this.#full(request.task);
    return new Promise((resolve) => {
      this.#admit(new SyncRun(this.#ports, request, accepted, resolve));
    });
  }

  /** Refuses what comes and what waits, and tells handlers to stop. */
  shutDown(): void {
    this.#closed = true;
    for (const run of this.#waiting) run.leave(SHUTTING_DOWN);
    for (const run of this.#running) run.stop("shutdown");
  }

  killAll(): void {
    for (const run of this.#running) run.kill();
  }

  /** Resolves when no handler runs for a synchronous request. */
  allOver(): Promise<void> {
    return this.#open.empty();
  }

  #admit(run: SyncRun): void {
    this.#waiting.add(run);
    run.begin({
      started: () => {
        this.#waiting.delete(run);
        this.#running.add(run);
        this.#open.enter();
        if (this.#closed) run.stop("shutdown");
      },
      left: () => this.#waiting.delete(run),
      gone: () => {
        this.#running.delete(run);
        this.#open.leave();
      },
    });
  }

  #isClosed(): boolean {
    return this.#closed;
  }

  #isFull(): boolean {
    const { pool, settings } = this.#ports;
    const { maxQueueDepth } = settings;
    return maxQueueDepth > 0 && pool.busy >= pool.size && this.#waiting.size >= maxQueueDepth;
  }

  #full(task: string): SyncOutcome {
    const { settings, observer, pool, runTimes } = this.#ports;
    observer.requestRefused(task);
    return {
      kind: "full",
      limit: settings.maxQueueDepth,
      retryAfterS: retryAfterS(this.#waiting.size + 1, pool.size, runTimes.value),
    };
  }
}

interface Stages {
  started(): void;
  /** It left the line without a slot. */
  left(): void;
  /** Its handler has gone, and its slot with it. */
  gone(): void;
}

/** One request, from the line to its answer and to the end of its handler, whichever is later. */
class SyncRun {
  readonly #ports: SyncRequestsPorts;
  readonly #request: SyncRequest;
  readonly #accepted: AcceptedInput;
  readonly #limitMs: number;
  readonly #enteredMs: number;
  #answer: ((outcome: SyncOutcome) => void) | null;
  #leaveLine: (() => boolean) | null = null;
  #cancelDeadline: (() => void) | null = null;
  #stages: Stages | null = null;
  #attempt: Attempt | null = null;
  #waitMs = 0;

  constructor(
    ports: SyncRequestsPorts,
    request: SyncRequest,
    accepted: AcceptedInput,
    answer: (outcome: SyncOutcome) => void,
  ) {
    this.#ports = ports;
    this.#request = request;
    this.#accepted = accepted;
    this.#answer = answer;
    this.#limitMs = runLimitMs(null, accepted.task, ports.settings.modelRunTimeoutMs);
    this.#enteredMs = ports.clock.monotonicMs();
  }

  begin(stages: Stages): void {
    this.#stages = stages;
    const { signal } = this.#request;
    if (signal?.aborted === true) {
      this.#callerLeft();
      return;
    }
    signal?.addEventListener("abort", this.#callerLeft);
    if (this.#limitMs > 0)
      this.#cancelDeadline = this.#ports.clock.timer(this.#limitMs, () => {
        const outcome: SyncOutcome = { kind: "timeout", limitMs: this.#limitMs };
        this.leave(outcome);
        this.#stopAndAnswer("time_limit", outcome);
      });
    this.#leaveLine = this.#ports.pool.enter((slot) => {
      this.#start(slot);
    });
  }

  /** Leaves the line with this answer, if it still waits. */
  leave(outcome: SyncOutcome): void {
    if (this.#attempt !== null) return;
    this.#leaveLine?.();
    this.#stages?.left();
    this.#finish(outcome);
  }

  stop(cause: StopCause): void {
    this.#attempt?.stop(cause);
  }

  kill(): void {
    this.#attempt?.kill();
  }

  readonly #callerLeft = (): void => {
    this.leave({ kind: "cancelled" });
    this.#stopAndAnswer("caller_gone", { kind: "cancelled" });
  };

  #stopAndAnswer(cause: StopCause, outcome: SyncOutcome): void {
    if (this.#attempt === null) return;
    this.#finish(outcome);
    this.#attempt.stop(cause);
  }

  #start(slot: Slot): void {
    const { runner, clock, settings } = this.#ports;
    const ports = { runner, clock, graceMs: settings.cancelGraceMs };
    this.#waitMs = clock.monotonicMs() - this.#enteredMs;
    const request = {
      jobId: null,
      attempt: 1,
      task: this.#accepted.task,
      payloadJson: this.#accepted.payloadJson,
      requestId: this.#request.requestId ?? null,
    };
    // The deadline of the request is armed above; it counts from the entry into the line.
    this.#attempt = new Attempt(ports, request, this.#listener(slot), 0);
    this.#stages?.started();
  }

  #finish(outcome: SyncOutcome): void {
    const answer = this.#answer;
    if (answer === null) return;
    this.#answer = null;
    this.#cancelDeadline?.();
    this.#request.signal?.removeEventListener("abort", this.#callerLeft);
    const waitMs =
      this.#attempt === null ? this.#ports.clock.monotonicMs() - this.#enteredMs : this.#waitMs;
    const runMs = this.#attempt?.runMs ?? 0;
    this.#ports.observer.requestEnded(this.#request.task, outcome.kind, waitMs, runMs);
    answer(outcome);
  }

  #listener(slot: Slot): RunListener {
    const fields = { task: this.#request.task, request_id: this.#request.requestId };
    return {
      onProgress: () => undefined,
      onLog: (level, message, given) => {
        this.#ports.logger[level]({ ...given, ...fields }, message);
      },
      onOutcome: (outcome) => {
        slot.release();
        this.#gone(outcome);
      },
    };
  }

  #gone(outcome: RunOutcome): void {
    if (this.#attempt === null) throw new Error("a run had its outcome before it began");
    this.#ports.runTimes.add(this.#attempt.runMs);
    this.#stages?.gone();
    this.#finish(answerOf(outcome, this.#attempt.causes));
  }
}

function answerOf(outcome: RunOutcome, causes: ReadonlySet<StopCause>): SyncOutcome {
  switch (outcome.kind) {
    case "succeeded":
      return { kind: "done", resultJson: outcome.resultJson };
    case "failed":
      if (causes.has("shutdown")) return SHUTTING_DOWN;
      return { kind: "failed", errorMessage: outcome.errorMessage };
    case "killed":
    case "abandoned":
      if (causes.has("shutdown")) return SHUTTING_DOWN;
      return {
        kind: "failed",
        errorMessage: GONE_MESSAGE,
      };
    default:
      return outcome satisfies never;
  }
}
