/**
 * Whether this process can take work, asked of the ledger itself: a cheap look with a deadline. Probes
 * that come close together share one look.
 */
import type { Ledger } from "../ledger/ledger.js";
import type { Clock } from "../runtime/clock.js";
import type { LedgerFaults } from "./ledger-faults.js";
import { within } from "./within.js";

/** Probes time out after a second by default (Kubernetes `timeoutSeconds`). */
const LOOK_LIMIT_MS = 1_000;
const CACHED_FOR_MS = 250;

interface Look {
  readonly atMs: number;
  /** Null: the ledger answers. */
  readonly fault: Promise<string | null>;
}

export class Readiness {
  readonly #ledger: Ledger;
  readonly #clock: Clock;
  readonly #faults: LedgerFaults;
  #last: Look | null = null;

  constructor(ledger: Ledger, clock: Clock, faults: LedgerFaults) {
    this.#ledger = ledger;
    this.#clock = clock;
    this.#faults = faults;
  }

  /** Why the ledger can't be worked with; null when it can. */
  async fault(): Promise<string | null> {
    return this.#faults.dispatchFault ?? (await this.#look());
  }

  #look(): Promise<string | null> {
    const nowMs = this.#clock.monotonicMs();
    if (this.#last !== null && nowMs - this.#last.atMs < CACHED_FOR_MS) return this.#last.fault;
    const counted = this.#ledger.counts().then(
      () => null,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    const late = (): string =>
      `the ledger did not answer within ${String(LOOK_LIMIT_MS / 1_000)} s`;
    const fault = within(this.#clock, LOOK_LIMIT_MS, counted, late);
    this.#last = { atMs: nowMs, fault };
    return fault;
  }
}
