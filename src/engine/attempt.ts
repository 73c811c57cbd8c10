/**
 * One run of a task, of a job or a synchronous request alike: starts it, holds it to its time limit,
 * passes on why it should stop, and kills it when it does not.
 *
 * The time limit counts from the start of the run (not from the claim: a job may have waited in a
 * buffer). After the limit, a cancel or a lost claim the handler has a grace period to stop by
 * itself; then it is killed, or given up when it runs inline. The listener has the outcome when the
 * handler is gone (or given up), and not before: whoever holds the slot gives it back then.
 */
import type { Clock } from "../runtime/clock.js";
import type { LogFields } from "../runtime/logger.js";
import type { RegisteredTask } from "../task/registry.js";
import type { ReportLevel } from "../task/reports.js";
import type { StopCause } from "./ending.js";
import type { Run, RunListener, RunOutcome, RunRequest, Runner } from "./runner/runner.js";

export interface AttemptPorts {
  readonly runner: Runner;
  readonly clock: Clock;
  /** How long a handler may go on after it was told to stop, ms, where its task says nothing of it. */
  readonly graceMs: number;
}

/** The message of the reason on the handler's signal. */
export const STOP_REASONS = {
  cancelled: "cancelled",
  lost: "the job is no longer this worker's",
  time_limit: "time limit",
  shutdown: "shutdown",
  caller_gone: "the caller is gone",
  caller_stopped: "the caller was told to stop",
} as const satisfies Record<StopCause, string>;

const NO_CAUSES: ReadonlySet<StopCause> = new Set();

export class Attempt implements RunListener {
  readonly limitMs: number;
  readonly #clock: Clock;
  readonly #graceMs: number;
  readonly #listener: RunListener;
  readonly #run: Run;
  readonly #startedMs: number;
  #causes: Set<StopCause> | null = null;
  #endedMs: number | null = null;
  #cancelLimit: (() => void) | null = null;
  #cancelGrace: (() => void) | null = null;

  /** @param limitMs 0: none. */
  constructor(ports: AttemptPorts, request: RunRequest, listener: RunListener, limitMs: number) {
    const { clock, runner } = ports;
    this.limitMs = limitMs;
    this.#clock = clock;
    this.#graceMs = request.task.graceMs ?? ports.graceMs;
    this.#listener = listener;
    this.#startedMs = clock.monotonicMs();
    this.#run = startRun(runner, request, this);
    if (limitMs > 0)
      this.#cancelLimit = clock.timer(limitMs, () => {
        this.stop("time_limit");
      });
  }

  /** Why it was told to stop, in no order; empty when it ended by itself. */
  get causes(): ReadonlySet<StopCause> {
    return this.#causes ?? NO_CAUSES;
  }

  /** How long it ran, ms: until now, or to its end. */
  get runMs(): number {
    return (this.#endedMs ?? this.#clock.monotonicMs()) - this.#startedMs;
  }

  /** Tells the handler to stop, and why. For a shutdown no grace is counted: its deadline is the caller's. */
  stop(cause: StopCause): void {
    if (this.#endedMs !== null || this.#causes?.has(cause) === true) return;
    this.#causes ??= new Set();
    this.#causes.add(cause);
    this.#run.abort(STOP_REASONS[cause]);
    if (cause === "shutdown" || this.#cancelGrace !== null) return;
    this.#cancelGrace = this.#clock.timer(this.#graceMs, () => {
      this.kill();
    });
  }

  /** Ends it for good. After the end it does nothing. */
  kill(): void {
    if (this.#endedMs === null) this.#run.kill();
  }

  onProgress(progressJson: string): void {
    this.#listener.onProgress(progressJson);
  }

  onLog(level: ReportLevel, message: string, fields: LogFields): void {
    this.#listener.onLog(level, message, fields);
  }

  onOutcome(outcome: RunOutcome): void {
    this.#endedMs = this.#clock.monotonicMs();
    this.#cancelLimit?.();
    this.#cancelGrace?.();
    this.#listener.onOutcome(outcome);
  }
}

/** Of two limits in ms, of which 0 is none: the one that comes first. */
export function shorterLimitMs(oneMs: number, otherMs: number): number {
  if (oneMs <= 0) return otherMs;
  return otherMs <= 0 ? oneMs : Math.min(oneMs, otherMs);
}

/**
 * The limit of one run in ms; 0: none.
 * @param askedMs by whoever wants the run; null: the task's own.
 * @param modelRunTimeoutMs bounds both; 0: it does not.
 */
export function runLimitMs(
  askedMs: number | null,
  { timeoutMs }: Pick<RegisteredTask, "timeoutMs">,
  modelRunTimeoutMs: number,
): number {
  return shorterLimitMs(askedMs ?? timeoutMs ?? 0, modelRunTimeoutMs);
}

/** A runner that throws is a bug of ours; the job still has to end, and its slot to come back. */
function startRun(runner: Runner, request: RunRequest, listener: RunListener): Run {
  try {
    return runner.start(request, listener);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    queueMicrotask(() => {
      listener.onOutcome({
        kind: "failed",
        errorMessage: `RunnerFault: ${message}`,
        retry: "default",
      });
    });
    return { abort: () => undefined, kill: () => undefined };
  }
}
