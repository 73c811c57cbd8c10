/**
 * Starts and stops an engine's parts in order.
 *
 * Starting: the first beat makes the worker known, then it claims, then maintenance begins.
 * Stopping: nothing new comes in, waits are answered, handlers are told to stop and waited for; what
 * remains at the limit is killed; the ends are recorded; and only then do the beats cease. Every step
 * has a deadline, so that neither a deaf handler nor a ledger that is down can hold it up; what could
 * not be recorded by then is found by stuck detection. Both are idempotent.
 */
import { JobtableError } from "../job/errors.js";
import type { Ledger } from "../ledger/ledger.js";
import type { Clock } from "../runtime/clock.js";
import { keepAlive } from "../runtime/keep-alive.js";
import type { Logger } from "../runtime/logger.js";
import { within } from "../runtime/within.js";
import type { TaskRegistry } from "../task/registry.js";
import type { Admission } from "./admission.js";
import type { EngineSettings } from "./api.js";
import type { Maintenance } from "./maintenance.js";
import type { Runner } from "./runner/runner.js";
import type { SyncRequests } from "./sync-requests.js";
import type { Waits } from "./waits.js";
import type { WorkerSide } from "./worker-side.js";

export type LifecycleState = "new" | "starting" | "running" | "draining" | "stopped";

export interface LifecycleParts {
  readonly ledger: Ledger;
  readonly tasks: TaskRegistry;
  readonly runner: Runner;
  readonly settings: EngineSettings;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly workerId: string;
  readonly workerSide: WorkerSide | null;
  readonly admission: Admission;
  readonly sync: SyncRequests;
  readonly waits: Waits;
  readonly maintenance: Maintenance;
}

/** For each step after the shutdown limit: what was killed is gone and recorded within milliseconds, or the ledger is down. */
const STEP_LIMIT_MS = 2_000;

export class Lifecycle {
  readonly #parts: LifecycleParts;
  #state: LifecycleState = "new";
  #starting: Promise<void> | null = null;
  /** The ledger may know the worker, also where the start failed. */
  #wasStarted = false;
  #stopping: Promise<void> | null = null;
  #letGo: (() => void) | null = null;

  constructor(parts: LifecycleParts) {
    this.#parts = parts;
  }

  get state(): LifecycleState {
    return this.#state;
  }

  /** Keeps the process alive until `stop`. Rejects with a `LedgerError` when the worker could not be made known; then it can be tried again. */
  start(): Promise<void> {
    this.#starting ??= this.#start();
    return this.#starting;
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #start(): Promise<void> {
    if (this.#state !== "new")
      throw new JobtableError("not_ready", "the engine was stopped: make a new one");
    this.#state = "starting";
    this.#wasStarted = true;
    this.#letGo = keepAlive();
    try {
      await this.#parts.workerSide?.start();
    } catch (error) {
      this.#letGo();
      this.#letGo = null;
      this.#resetStart();
      throw error;
    }
    if (this.#stopping !== null) return;
    this.#parts.maintenance.start();
    this.#state = "running";
    this.#log("started");
  }

  /** Unless a stop has come meanwhile. */
  #resetStart(): void {
    if (this.#stopping !== null) return;
    this.#state = "new";
    this.#starting = null;
  }

  async #stop(): Promise<void> {
    const { admission, waits, sync, workerSide, maintenance } = this.#parts;
    const letGo = keepAlive();
    this.#state = "draining";
    admission.close();
    waits.close();
    sync.shutDown();
    const over = Promise.all([
      workerSide?.shutDown(),
      sync.allOver(),
      maintenance.stop(),
      // A start that fails has told its caller.
      this.#starting?.catch(() => undefined),
    ]);
    await this.#step(over, this.#parts.settings.shutdownTimeoutMs);
    workerSide?.killAll();
    sync.killAll();
    await this.#step(over);
    workerSide?.giveUp();
    if (this.#wasStarted) await this.#step(workerSide?.leave());
    await this.#step(this.#parts.runner.close());
    this.#state = "stopped";
    this.#log("stopped");
    this.#letGo?.();
    letGo();
  }

  async #step(work: Promise<unknown> | undefined, limitMs = STEP_LIMIT_MS): Promise<void> {
    if (work !== undefined) await within(this.#parts.clock, limitMs, work, () => undefined);
  }

  #log(event: "started" | "stopped"): void {
    const { logger, settings, ledger, workerSide, workerId, tasks } = this.#parts;
    logger.info(
      {
        worker_id: workerSide === null ? null : workerId,
        ledger: ledger.kind,
        max_workers: settings.maxWorkers,
        tasks: tasks.names,
      },
      `engine ${event}`,
    );
  }
}
