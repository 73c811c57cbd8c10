/**
 * Ends jobs that waited for a worker longer than `async_timeout`, when their time is up rather than
 * at the next interval. It knows when to look: the oldest job in the queue is the first to expire, so
 * after each look the next one is due when that job will be. With an empty queue nothing is armed
 * and nothing is asked; a submit or a hint of work arms it again.
 */
import type { Ledger } from "../ledger/ledger.js";
import type { Clock } from "../runtime/clock.js";
import { inChunks } from "./in-chunks.js";
import type { LedgerFaults } from "./ledger-faults.js";

/** Not more often than this, however densely jobs expire. */
const LEAST_PAUSE_MS = 20;
/** After a look that failed. */
const RETRY_AFTER_MS = 1_000;

export interface ExpiryPorts {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly faults: LedgerFaults;
  /** Longest wait, ms; 0: none. */
  readonly waitLimitMs: number;
}

export class Expiry {
  readonly #ports: ExpiryPorts;
  #cancelTimer: (() => void) | null = null;
  #looking: Promise<void> | null = null;
  #queuedMeanwhile = false;
  #stopped = true;

  constructor(ports: ExpiryPorts) {
    this.#ports = ports;
  }

  start(): void {
    if (this.#ports.waitLimitMs <= 0) return;
    this.#stopped = false;
    this.#lookIn(0);
  }

  /** A job may have been queued: it expires a full limit from now at the earliest. */
  queued(): void {
    if (this.#stopped || this.#cancelTimer !== null) return;
    if (this.#looking === null) this.#lookIn(this.#ports.waitLimitMs);
    else this.#queuedMeanwhile = true;
  }

  /** Idempotent; waits for the look under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    await this.#looking;
  }

  #lookIn(delayMs: number): void {
    this.#cancelTimer = this.#ports.clock.timer(delayMs, () => {
      this.#cancelTimer = null;
      this.#looking = this.#look().then((nextMs) => {
        this.#looking = null;
        if (nextMs !== null && !this.#stopped) this.#lookIn(nextMs);
      });
    });
  }

  #wasQueuedMeanwhile(): boolean {
    return this.#queuedMeanwhile;
  }

  /** @returns when to look again, or null while nothing is queued. */
  async #look(): Promise<number | null> {
    const { ledger, waitLimitMs, faults } = this.#ports;
    this.#queuedMeanwhile = false;
    try {
      await inChunks(
        (chunk) => ledger.expire({ waitLimitMs, chunk }),
        () => !this.#stopped,
      );
      const { queued, oldestQueuedMs } = await ledger.counts();
      faults.worked("expire");
      if (queued === 0 && !this.#wasQueuedMeanwhile()) return null;
      return Math.max(LEAST_PAUSE_MS, waitLimitMs - (oldestQueuedMs ?? 0));
    } catch (error) {
      faults.failed("expire", error);
      return RETRY_AFTER_MS;
    }
  }
}
