/**
 * Maintenance at intervals, by every started engine, safe when all do it: finds jobs whose worker is
 * lost, ends jobs that nobody can run, forgets old ones. The first round is
 * at start-up, so that a restarted server goes on where a killed one was.
 *
 * A process that was suspended comes back with an old clock in its own heartbeat, and so may all the
 * others of its machine. So each round begins with a fresh beat of its own worker, and a round that
 * comes much later than planned is left out, which gives the others the time to beat. They get it as
 * well after the ledger was away: meanwhile nobody could beat, and whoever comes back first must not
 * take all others for lost. A process that has just started can't know whether it was away, so it
 * waits as long as after an outage before it judges by the age of a beat. Processes that are known to
 * be gone are found at any time.
 */
import type { Ledger, RescuedJob } from "../ledger/ledger.js";
import type { Clock } from "../runtime/clock.js";
import type { Logger } from "../runtime/logger.js";
import type { Processes } from "../runtime/process-identity.js";
import { inChunks } from "./in-chunks.js";
import type { LedgerFaults } from "./ledger-faults.js";
import type { Retention } from "./retention.js";

/** Of the shortest timeout that it looks for; what is lost is found that much later at most. */
const ROUNDS_PER_TIMEOUT = 3;
const SHORTEST_INTERVAL_MS = 250;
const LONGEST_INTERVAL_MS = 10_000;
/** Nobody is lost by the age of a beat. */
const NO_AGE = { jobTimeoutMs: Number.MAX_SAFE_INTEGER, workerTimeoutMs: Number.MAX_SAFE_INTEGER };

export interface SweeperPorts {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly faults: LedgerFaults;
  readonly processes: Processes;
  readonly retention: Retention;
  readonly jobTimeoutMs: number;
  readonly workerTimeoutMs: number;
  /** Of this process; null where it runs no jobs itself. */
  readonly workerId: string | null;
  /** Whether this process is known to be alive; beats when its last beat is not fresh. Never rejects. */
  readonly alive: () => Promise<boolean>;
}

export class Sweeper {
  readonly #ports: SweeperPorts;
  readonly #intervalMs: number;
  #cancelTimer: (() => void) | null = null;
  #round: Promise<void> | null = null;
  /** Since when the ledger is known to have been there; monotonic ms. */
  #calmSinceMs = 0;
  #stopped = true;

  constructor(ports: SweeperPorts) {
    this.#ports = ports;
    const timeoutMs = Math.min(ports.jobTimeoutMs, ports.workerTimeoutMs);
    this.#intervalMs = Math.min(
      Math.max(timeoutMs / ROUNDS_PER_TIMEOUT, SHORTEST_INTERVAL_MS),
      LONGEST_INTERVAL_MS,
    );
    ports.faults.onRecovered(() => {
      this.#calmSinceMs = ports.clock.monotonicMs();
    });
  }

  start(): void {
    this.#stopped = false;
    const { clock } = this.#ports;
    this.#calmSinceMs = clock.monotonicMs();
    this.#roundAt(clock.nowMs());
  }

  /** Idempotent; waits for the round under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    await this.#round;
  }

  /** By the wall clock: the monotonic one may stand still while the machine sleeps. */
  #roundAt(plannedMs: number): void {
    const { clock } = this.#ports;
    this.#cancelTimer = clock.timer(plannedMs - clock.nowMs(), () => {
      const lateMs = clock.nowMs() - plannedMs;
      const wasSuspended = lateMs > this.#ports.workerTimeoutMs / 2;
      this.#round = (wasSuspended ? Promise.resolve() : this.#sweep()).then(() => {
        this.#round = null;
        if (!this.#stopped) this.#roundAt(clock.nowMs() + this.#intervalMs);
      });
    });
  }

  /** Never rejects. */
  async #sweep(): Promise<void> {
    const { faults, retention } = this.#ports;
    if (!(await this.#ports.alive())) return;
    try {
      await this.#rescue();
      await this.#endUnrunnable();
      faults.worked("sweep");
    } catch (error) {
      faults.failed("sweep", error);
      return;
    }
    if (!this.#stopped) await retention.pass();
  }

  async #rescue(): Promise<void> {
    const { ledger } = this.#ports;
    const goneWorkerIds = await this.#goneWorkers();
    if (goneWorkerIds.length === 0 && !this.#mayJudge()) return;
    await inChunks(async (chunk) => {
      const { jobTimeoutMs, workerTimeoutMs } = this.#mayJudge() ? this.#ports : NO_AGE;
      const rescued = await ledger.rescue({ jobTimeoutMs, workerTimeoutMs, goneWorkerIds, chunk });
      for (const job of rescued) this.#report(job);
      return rescued.length;
    }, this.#mayGoOn);
  }

  async #goneWorkers(): Promise<string[]> {
    const workers = await this.#ports.ledger.workers();
    return workers
      .filter((worker) => this.#ports.processes.isGone(worker))
      .map(({ workerId }) => workerId);
  }

  /** Whether a beat's age says that its worker is lost: others have had the time to beat. */
  #mayJudge(): boolean {
    const { faults, clock, workerTimeoutMs } = this.#ports;
    return !faults.isAway && clock.monotonicMs() - this.#calmSinceMs >= workerTimeoutMs;
  }

  /**
   * After a deploy the workers of some tasks come back later than others, and before any has come an
   * API-only process knows of none: so only a worker says that nobody runs a task, and only when it may
   * judge at all, which is after it has run for the grace itself.
   */
  async #endUnrunnable(): Promise<void> {
    const { ledger, workerId, workerTimeoutMs } = this.#ports;
    if (workerId === null || !this.#mayJudge() || !(await this.#ports.alive())) return;
    await inChunks(
      (chunk) => ledger.reject({ workerId, graceMs: workerTimeoutMs, workerTimeoutMs, chunk }),
      this.#mayGoOn,
    );
  }

  readonly #mayGoOn = (): boolean => !this.#stopped;

  #report({ jobId, workerId, status }: RescuedJob): void {
    this.#ports.logger.warn(
      { job_id: jobId, worker_id: workerId, status },
      "the job's worker was lost",
    );
  }
}
