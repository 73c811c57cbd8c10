/**
 * Runs tasks on this process's own event loop: for handlers that wait more than they compute, and
 * for functions given to the library, which no thread could load.
 *
 * Nothing can end such a run from outside. `kill` gives it up: its outcome is `abandoned`, its
 * reports and its late end are dropped, while its code may go on and holds what it holds. The
 * handler's own promise is always looked after, however late it rejects. A promise that a handler
 * leaves to nobody is the process's, as for any other code in it: Node ends the process for it,
 * unless the program listens to `unhandledRejection`. (Telling such promises apart would need
 * asynchronous context tracking in the process that serves, which every request would pay for.)
 * Handlers that can't be trusted that far belong in threads.
 */
import type { Clock } from "../../runtime/clock.js";
import { execute, type TaskRun } from "../../task/execute.js";
import { Reports, type ReportLevel, type ReportSink } from "../../task/reports.js";
import { Stop } from "../../task/stop.js";
import type { TaskOptions } from "../../task/task.js";
import { InFlight } from "../in-flight.js";
import type { Run, RunListener, RunOutcome, RunRequest, Runner } from "./runner.js";

export interface InlineRunnerOptions {
  readonly clock: Clock;
}

export function createInlineRunner({ clock }: InlineRunnerOptions): Runner {
  return new InlineRunner(clock);
}

class InlineRunner implements Runner {
  readonly #clock: Clock;
  readonly #running = new InFlight();
  #toBegin: InlineRun[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** It begins in a microtask: a handler never runs inside its starter's call. */
  start(request: RunRequest, listener: RunListener): Run {
    const run = new InlineRun(request, listener, this.#clock, this.#running);
    if (this.#toBegin.push(run) === 1) void SOON.then(this.#begin);
    return run;
  }

  async close(): Promise<void> {
    while (this.#running.count > 0) await this.#running.empty();
  }

  readonly #begin = (): void => {
    const runs = this.#toBegin;
    this.#toBegin = [];
    for (const run of runs) run.begin();
  };
}

const SOON = Promise.resolve();

class InlineRun implements Run, TaskRun, ReportSink {
  readonly definition: TaskOptions;
  readonly payloadJson: string;
  readonly jobId: string | null;
  readonly attempt: number;
  readonly requestId: string | null;
  readonly stop = new Stop();
  readonly reports: Reports;
  readonly #running: InFlight;
  /** Null once it has its outcome. */
  #listener: RunListener | null;

  constructor(
    { task, payloadJson, jobId, attempt, requestId }: RunRequest,
    listener: RunListener,
    clock: Clock,
    running: InFlight,
  ) {
    this.definition = task.definition;
    this.payloadJson = payloadJson;
    this.jobId = jobId;
    this.attempt = attempt;
    this.requestId = requestId;
    this.reports = new Reports(clock, this);
    this.#running = running;
    this.#listener = listener;
    running.enter();
  }

  begin(): void {
    void execute(this).then(this.#settle);
  }

  abort(reason: string): void {
    this.stop.ask(reason);
  }

  kill(): void {
    const listener = this.#listener;
    if (listener === null) return;
    this.#listener = null;
    this.reports.mute();
    this.stop.ask("the run was given up");
    queueMicrotask(() => {
      this.#running.leave();
      listener.onOutcome({ kind: "abandoned" });
    });
  }

  progress(json: string): void {
    this.#listener?.onProgress(json);
  }

  log(level: ReportLevel, message: string, fieldsJson: string): void {
    this.#listener?.onLog(level, message, JSON.parse(fieldsJson) as Record<string, unknown>);
  }

  readonly #settle = (outcome: RunOutcome): void => {
    const listener = this.#listener;
    if (listener === null) return;
    this.#listener = null;
    this.#running.leave();
    listener.onOutcome(outcome);
  };
}
