/**
 * One task thread, seen from the process: idle, running one task, or on its way out. Its run's
 * outcome settles once, and only when the thread is free or gone, so that a slot is never given
 * back while a handler still holds the machine: a thread that is killed inside a long native call
 * is gone when that call returns.
 */
import type { ResourceLimits, Worker } from "node:worker_threads";
import type { Logger } from "../../runtime/logger.js";
import type { TaskEnding } from "../../task/execute.js";
import { describe, failed } from "../../task/failure.js";
import { startThread, type StartedThread } from "../../task/start-thread.js";
import type { FromThread } from "../../task/thread-protocol.js";
import type { RunReports, RunOutcome, RunRequest } from "./runner.js";

export interface TaskWorkerOptions {
  readonly logger: Logger;
  readonly resourceLimits: ResourceLimits;
  /** It came through a run and can take another. */
  onIdle(): void;
  /** It has exited. */
  onGone(): void;
}

/** `unstarted`: the thread had died before the run reached it, which is no fault of the run. */
export type ThreadOutcome = RunOutcome | { readonly kind: "unstarted" };

export interface ThreadRun {
  /** Settles once, when the thread is free or gone; never rejects. */
  readonly outcome: Promise<ThreadOutcome>;
  abort(reason: string): void;
  kill(): void;
}

interface ActiveRun {
  readonly run: number;
  readonly listener: RunReports;
  readonly settle: (outcome: ThreadOutcome) => void;
  started: boolean;
  killed: boolean;
  aborted: boolean;
  /** An end that waits for the thread's exit. */
  ending: TaskEnding | null;
}

export class TaskWorker {
  /** The task files that it has imported, or is about to. */
  readonly files = new Set<string>();
  /** Settles when the thread has exited. */
  readonly gone: Promise<void>;

  readonly #options: TaskWorkerOptions;
  readonly #thread: StartedThread;
  #active: ActiveRun | null = null;
  #runs = 0;
  #lastTask = "";
  /** Not to be used again: terminated, or to be when its run has ended. */
  #spent = false;
  #crash: unknown = null;

  constructor(options: TaskWorkerOptions) {
    this.#options = options;
    this.#thread = startThread((message) => {
      this.#receive(message);
    }, options.resourceLimits);
    this.#worker.on("error", (error: unknown) => (this.#crash = error));
    this.gone = new Promise((done) => {
      this.#worker.once("exit", (code) => {
        this.#exited(code);
        done();
      });
    });
  }

  /** Whether it takes no other run: it is gone, or going. */
  get spent(): boolean {
    return this.#spent;
  }

  get #worker(): Worker {
    return this.#thread.worker;
  }

  /** Only while it is idle. */
  run(file: string, request: RunRequest, listener: RunReports): ThreadRun {
    this.#worker.ref();
    this.files.add(file);
    this.#runs += 1;
    const run = this.#runs;
    const task = request.task.name;
    this.#lastTask = task;
    const outcome = new Promise<ThreadOutcome>((settle) => {
      this.#active = {
        run,
        listener,
        settle,
        started: false,
        killed: false,
        aborted: false,
        ending: null,
      };
    });
    const { jobId, attempt, requestId, payloadJson } = request;
    const identity = { jobId, attempt, requestId };
    this.#thread.send({ type: "run", run, file, taskName: task, payloadJson, identity });
    return {
      outcome,
      abort: (reason) => {
        this.#abort(run, reason);
      },
      kill: () => {
        this.#kill(run);
      },
    };
  }

  terminate(): void {
    this.#spent = true;
    void this.#worker.terminate();
  }

  #abort(run: number, reason: string): void {
    if (this.#active?.run !== run || this.#active.aborted) return;
    this.#active.aborted = true;
    this.#thread.send({ type: "abort", run, reason });
  }

  #kill(run: number): void {
    if (this.#active?.run !== run || this.#active.killed) return;
    this.#active.killed = true;
    this.terminate();
  }

  #receive(message: FromThread): void {
    if (message.type === "stray") {
      this.#stray(message.errorMessage);
      return;
    }
    if (message.type === "loaded") return;
    const active = this.#active;
    if (active?.run !== message.run || active.killed || active.ending !== null) return;
    switch (message.type) {
      case "started":
        active.started = true;
        return;
      case "progress":
        active.listener.onProgress(message.json);
        return;
      case "log": {
        const fields = JSON.parse(message.fieldsJson) as Record<string, unknown>;
        active.listener.onLog(message.level, message.message, fields);
        return;
      }
      case "ended":
        this.#ended(active, message.ending, message.spent);
        return;
      default:
        message satisfies never;
    }
  }

  #ended(active: ActiveRun, ending: TaskEnding, spent: boolean): void {
    if (spent || this.#spent) {
      active.ending = ending;
      this.terminate();
      return;
    }
    this.#active = null;
    this.#worker.unref();
    active.settle(ending);
    this.#options.onIdle();
  }

  /** What an earlier run left behind threw: the run under way may end, the next one gets another thread. */
  #stray(errorMessage: string): void {
    const task = this.#lastTask;
    this.#options.logger.warn(
      { task, error: errorMessage },
      "something that an ended run had left behind threw; its thread is replaced",
    );
    this.#spent = true;
    if (this.#active === null) this.terminate();
  }

  #exited(code: number): void {
    const active = this.#active;
    this.#active = null;
    this.#spent = true;
    this.#options.onGone();
    if (active === null) return;
    // An end that only waited for the exit came before whoever killed it meanwhile.
    if (active.ending !== null) active.settle(active.ending);
    else if (active.killed) active.settle({ kind: "killed" });
    else if (!active.started && this.#runs > 1) active.settle({ kind: "unstarted" });
    else active.settle(failed("ThreadExit", this.#whyGone(code)));
  }

  #whyGone(code: number): string {
    const crash = this.#crash;
    if (crash === null)
      return `the handler ended its thread (process.exit, code ${String(code)}); return or throw instead`;
    if (crash instanceof Error && "code" in crash && crash.code === "ERR_WORKER_OUT_OF_MEMORY")
      return "out of memory: the thread's heap reached its limit";
    return `the thread crashed: ${describe(crash)}`;
  }
}
