/** The half of an engine that claims and runs jobs, wired together: claim loop, runs, ends and beats. */
import type { Job } from "../job/job.js";
import type { Ledger, WorkerBeat } from "../ledger/ledger.js";
import type { Clock } from "../runtime/clock.js";
import type { Logger } from "../runtime/logger.js";
import type { ProcessIdentity } from "../runtime/process-identity.js";
import type { Random } from "../runtime/random.js";
import type { TaskRegistry } from "../task/registry.js";
import type { EngineObserver, EngineSettings } from "./api.js";
import type { Batcher } from "./batcher.js";
import type { CautiousAverage } from "./cautious-average.js";
import { Heartbeat } from "./heartbeat.js";
import { JobRuns } from "./job-runs.js";
import type { LedgerFaults } from "./ledger-faults.js";
import { OwnedJobs } from "./owned-jobs.js";
import type { Pool } from "./pool.js";
import type { Runner } from "./runner/runner.js";
import type { StallGuard, StartStallGuard } from "./stall-guard.js";
import { Settler } from "./settler.js";
import { Tally } from "./tally.js";
import { Worker } from "./worker.js";

export interface WorkerSidePorts {
  readonly workerId: string;
  readonly ledger: Ledger;
  /** All that it claims and runs: also what nobody can submit. */
  readonly tasks: TaskRegistry;
  /** Whether one of them may hold up the event loop. */
  readonly mayStall: boolean;
  readonly runner: Runner;
  readonly settings: EngineSettings;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly observer: EngineObserver;
  readonly pool: Pool;
  readonly faults: LedgerFaults;
  readonly looks: Batcher<string, Job | null>;
  readonly runTimes: CautiousAverage;
  readonly identity: ProcessIdentity;
  /** A job became terminal here. */
  readonly jobEnded: () => void;
  /** Left out: nobody beats while the event loop is held up. */
  readonly stallGuard?: StartStallGuard | undefined;
}

export class WorkerSide {
  readonly tally: Tally;
  readonly #ports: WorkerSidePorts;
  readonly #settler: Settler;
  readonly #heartbeat: Heartbeat;
  readonly #runs: JobRuns;
  readonly #worker: Worker;
  #guard: StallGuard | null = null;
  #draining = false;

  constructor(ports: WorkerSidePorts) {
    this.#ports = ports;
    const { settings, ledger, runner, clock } = ports;
    const owned = new OwnedJobs(ledger, ports.looks);
    this.tally = new Tally(ports.jobEnded);
    this.#settler = new Settler(ports);
    this.#heartbeat = new Heartbeat({
      ...ports,
      owned,
      workerTimeoutMs: settings.workerTimeoutMs,
      jobTimeoutMs: settings.jobTimeoutMs,
      describe: () => {
        const row = this.#describe();
        this.#guard?.known(row);
        return row;
      },
    });
    this.#runs = new JobRuns({
      ...ports,
      owned,
      settler: this.#settler,
      tally: this.tally,
      attempts: { runner, clock, graceMs: settings.cancelGraceMs },
      freed: (slot) => {
        this.#worker.freed(slot);
      },
      progressed: () => {
        this.#heartbeat.progressed();
      },
      flushProgress: () => this.#heartbeat.beat(),
    });
    this.#worker = new Worker({
      ...ports,
      taskNames: ports.tasks.names,
      runs: this.#runs,
      owned,
      pollIntervalMs: settings.pollIntervalMs,
    });
  }

  get lastBeatMs(): number | null {
    return this.#heartbeat.lastBeatMs;
  }

  /** Makes the worker known, then claims. Rejects with a `LedgerError`. */
  async start(): Promise<void> {
    await this.#heartbeat.start();
    if (this.#isDraining()) return;
    await this.#startGuard();
    if (!this.#isDraining()) this.#worker.start();
  }

  /** Whether the ledger has heard of this worker lately; beats now if not. */
  async alive(): Promise<boolean> {
    const { lastBeatMs, intervalMs } = this.#heartbeat;
    const ageMs = lastBeatMs === null ? Infinity : this.#ports.clock.nowMs() - lastBeatMs;
    return ageMs < intervalMs / 2 || this.#heartbeat.beat();
  }

  /** Claims nothing more and tells handlers to stop; resolves when all jobs are over, their ends recorded or given up. */
  async shutDown(): Promise<void> {
    this.#draining = true;
    this.#runs.shutDown();
    await Promise.all([this.#worker.drain(), this.#runs.allOver()]);
  }

  killAll(): void {
    this.#runs.killAll();
  }

  /** Ends the attempts to record ends. */
  giveUp(): void {
    this.#settler.giveUp();
  }

  /** Ends the beats, and takes the worker off the list. */
  async leave(): Promise<void> {
    const { ledger, workerId, logger } = this.#ports;
    await Promise.all([this.#heartbeat.stop(), this.#guard?.stop()]);
    try {
      await ledger.leave(workerId);
    } catch (error) {
      logger.warn({ worker_id: workerId, err: error }, "the worker could not sign off");
    }
  }

  async #startGuard(): Promise<void> {
    const { mayStall, stallGuard, settings, logger } = this.#ports;
    if (stallGuard === undefined || !mayStall) return;
    try {
      this.#guard = stallGuard(settings);
      this.#guard.known(this.#describe());
      await this.#guard.ready;
    } catch (error) {
      // The system has no room for a thread; the worker can do without.
      logger.warn({ err: error }, "the stall guard could not be started");
    }
  }

  #isDraining(): boolean {
    return this.#draining;
  }

  #describe(): WorkerBeat {
    const { workerId, identity, tasks, settings } = this.#ports;
    const { processed, failed, cancelled } = this.tally;
    return {
      workerId,
      ...identity,
      state: this.#draining ? "draining" : "running",
      tasks: tasks.names,
      maxWorkers: settings.maxWorkers,
      processed,
      failed,
      cancelled,
    };
  }
}
