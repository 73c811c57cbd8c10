/**
 * Runs tasks in worker threads, one run at a time in each. A thread that came through its run is
 * kept warm, with what its tasks have loaded: the next run takes the idle thread that knows its
 * file, else the one used last, else a new one. At most `maxThreads` are kept; whoever starts runs
 * has that many slots, so there are never more, but for threads that are just ending.
 *
 * Idle threads never keep the process alive. A thread that exited, crashed, was killed or is spent
 * (thread-protocol.ts) is gone for good.
 */
import type { ResourceLimits } from "node:worker_threads";
import type { Logger } from "../../runtime/logger.js";
import { describe, failed } from "../../task/failure.js";
import { InFlight } from "../in-flight.js";
import type { Run, RunListener, RunOutcome, RunRequest, Runner } from "./runner.js";
import { TaskWorker, type ThreadRun } from "./task-worker.js";

export interface ThreadRunnerOptions {
  /** How many idle and running threads to keep, from 1: the pool's slots. */
  readonly maxThreads: number;
  readonly logger: Logger;
  /** Bounds of each thread's heap; left out: Node's own. Past them its run fails with `ThreadExit: out of memory`. */
  readonly resourceLimits?: ResourceLimits;
}

export function createThreadRunner(options: ThreadRunnerOptions): Runner {
  return new ThreadRunner(options);
}

class ThreadRunner implements Runner {
  readonly #options: ThreadRunnerOptions;
  readonly #all = new Set<TaskWorker>();
  /** The one used last comes last. */
  readonly #idle: TaskWorker[] = [];
  readonly #running = new InFlight();
  #closed = false;

  constructor(options: ThreadRunnerOptions) {
    this.#options = options;
  }

  start(request: RunRequest, listener: RunListener): Run {
    if (this.#closed) throw new Error("the thread runner is closed");
    const { file } = request.task;
    if (file === null)
      throw new Error(`task ${request.task.name} has no file that a thread could load`);
    this.#running.enter();
    return new RestartableRun(
      () => this.#begin(file, request, listener),
      (outcome) => {
        this.#running.leave();
        listener.onOutcome(outcome);
      },
    );
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const worker of this.#idle.splice(0)) worker.terminate();
    await this.#running.empty();
    await Promise.all([...this.#all].map((worker) => worker.gone));
  }

  #begin(file: string, request: RunRequest, listener: RunListener): ThreadRun {
    try {
      return (this.#takeIdle(file) ?? this.#add()).run(file, request, listener);
    } catch (error) {
      // The system has no room for another thread: a fault of the moment, not of the job.
      const outcome = failed("ThreadExit", `no thread could be started (${describe(error)})`);
      return { outcome: Promise.resolve(outcome), abort: () => undefined, kill: () => undefined };
    }
  }

  #takeIdle(file: string): TaskWorker | undefined {
    const usable = this.#idle.filter(({ spent }) => !spent);
    const taken = usable.findLast((worker) => worker.files.has(file)) ?? usable.at(-1);
    if (taken !== undefined) this.#idle.splice(this.#idle.indexOf(taken), 1);
    return taken;
  }

  #add(): TaskWorker {
    const { logger, resourceLimits } = this.#options;
    const worker = new TaskWorker({
      logger,
      resourceLimits: resourceLimits ?? {},
      onIdle: () => {
        this.#keep(worker);
      },
      onGone: () => {
        this.#forget(worker);
      },
    });
    this.#all.add(worker);
    return worker;
  }

  #keep(worker: TaskWorker): void {
    const kept = [...this.#all].filter(({ spent }) => !spent).length;
    if (this.#closed || kept > this.#options.maxThreads) worker.terminate();
    else this.#idle.push(worker);
  }

  #forget(worker: TaskWorker): void {
    this.#all.delete(worker);
    const position = this.#idle.indexOf(worker);
    if (position >= 0) this.#idle.splice(position, 1);
  }
}

/**
 * A run that begins again where an idle thread turns out to have died before the run reached it
 * (what an earlier run left behind may have ended it).
 */
class RestartableRun implements Run {
  #current: ThreadRun;
  #abortReason: string | null = null;
  #killed = false;

  constructor(begin: () => ThreadRun, ended: (outcome: RunOutcome) => void) {
    this.#current = begin();
    void this.#follow(begin).then(ended);
  }

  abort(reason: string): void {
    this.#abortReason ??= reason;
    this.#current.abort(reason);
  }

  kill(): void {
    this.#killed = true;
    this.#current.kill();
  }

  async #follow(begin: () => ThreadRun): Promise<RunOutcome> {
    for (;;) {
      const outcome = await this.#current.outcome;
      if (outcome.kind !== "unstarted") return outcome;
      if (this.#killed) return { kind: "killed" };
      this.#current = begin();
      if (this.#abortReason !== null) this.#current.abort(this.#abortReason);
    }
  }
}
