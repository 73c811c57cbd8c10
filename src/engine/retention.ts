/**
 * Forgets jobs that ended: those older than `async_job_ttl`, then the oldest beyond
 * `async_max_completed`. Swept at intervals, and on submit as soon as it can matter: when so many
 * jobs have ended since the last pass that the bound may be passed by more than a hundredth, or a
 * tenth of the retention time has gone by. A long line of jobs that only end is swept on the way.
 * Jobs that end in other processes are left to the interval.
 */
import type { Ledger } from "../ledger/ledger.js";
import type { Clock } from "../runtime/clock.js";
import { inChunks, SWEEP_CHUNK } from "./in-chunks.js";
import type { LedgerFaults } from "./ledger-faults.js";

/** Of the bound: at 100,000 one pass forgets a thousand jobs, at 100 each one is on time. */
const SLACK = 1 / 100;
/** Of the retention time. */
const TTL_SHARE = 1 / 10;
const LEAST_PAUSE_MS = 250;
/** How many jobs may have ended beyond the bound while none was submitted: one piece of a sweep. */
const MOST_BEYOND = SWEEP_CHUNK;

export interface RetentionPorts {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly faults: LedgerFaults;
  readonly ttlMs: number;
  /** Most terminal jobs to keep. */
  readonly keep: number;
}

export class Retention {
  readonly #ports: RetentionPorts;
  readonly #slack: number;
  readonly #everyMs: number;
  /** How many more may end before the bound is passed; null while unknown. */
  #room: number | null = null;
  #lastPassMs = -Infinity;
  #passing: Promise<void> | null = null;
  #stopped = false;

  constructor(ports: RetentionPorts) {
    this.#ports = ports;
    this.#slack = Math.floor(ports.keep * SLACK) - 1;
    this.#everyMs = Math.max(LEAST_PAUSE_MS, ports.ttlMs * TTL_SHARE);
  }

  /** A job ended here. Also without submits what is beyond the bound is bounded. */
  ended(): void {
    if (this.#room === null) return;
    this.#room -= 1;
    if (this.#room < -Math.max(this.#slack, MOST_BEYOND)) void this.pass();
  }

  /** Starts a pass when it can matter; the submit does not wait for it. */
  submitting(): void {
    const tooMany = this.#room !== null && this.#room < -Math.max(this.#slack, 0);
    const tooOld = this.#ports.clock.monotonicMs() - this.#lastPassMs >= this.#everyMs;
    if (tooMany || tooOld) void this.pass();
  }

  /** One pass, in chunks; concurrent calls share it. Never rejects. */
  pass(): Promise<void> {
    this.#passing ??= this.#pass().finally(() => {
      this.#passing = null;
    });
    return this.#passing;
  }

  /** Idempotent; waits for the pass under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#passing;
  }

  async #pass(): Promise<void> {
    const { ledger, clock, faults, ttlMs, keep } = this.#ports;
    if (this.#stopped) return;
    this.#lastPassMs = clock.monotonicMs();
    this.#room = null;
    try {
      await inChunks(
        (chunk) => ledger.evict({ ttlMs, keep, chunk }),
        () => !this.#stopped,
      );
      const { total, queued, running } = await ledger.counts();
      this.#room = keep - (total - queued - running);
      faults.worked("evict");
    } catch (error) {
      faults.failed("evict", error);
    }
  }
}
