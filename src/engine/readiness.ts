/**
 * Whether this process can take work, asked of the ledger itself: a cheap look with a deadline. Probes
 * that come close together share one look. The answer is public, so it carries the registry's
 * sentence; the error itself is logged, once per change.
 */
import type { Ledger } from "../ledger/ledger.js";
import type { Clock } from "../runtime/clock.js";
import type { Logger } from "../runtime/logger.js";
import { within } from "../runtime/within.js";
import { publicSentence, type LedgerFaults } from "./ledger-faults.js";

/** Probes time out after a second by default (Kubernetes `timeoutSeconds`). */
const LOOK_LIMIT_MS = 1_000;
const CACHED_FOR_MS = 250;
const LATE = `the ledger did not answer within ${String(LOOK_LIMIT_MS / 1_000)} s`;

interface Look {
  readonly atMs: number;
  /** Null: the ledger answers. */
  readonly fault: Promise<string | null>;
}

export interface ReadinessPorts {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly faults: LedgerFaults;
  readonly logger: Logger;
}

export class Readiness {
  readonly #ports: ReadinessPorts;
  #last: Look | null = null;
  /** The error's own message, as logged last; null: the ledger answered. */
  #logged: string | null = null;

  constructor(ports: ReadinessPorts) {
    this.#ports = ports;
  }

  /** Why the ledger can't be worked with, in words for anyone; null when it can. */
  async fault(): Promise<string | null> {
    return this.#ports.faults.dispatchFault ?? (await this.#look());
  }

  #look(): Promise<string | null> {
    const { clock } = this.#ports;
    const nowMs = clock.monotonicMs();
    if (this.#last !== null && nowMs - this.#last.atMs < CACHED_FOR_MS) return this.#last.fault;
    const fault = this.#ask();
    this.#last = { atMs: nowMs, fault };
    return fault;
  }

  async #ask(): Promise<string | null> {
    const { ledger, clock } = this.#ports;
    try {
      const isLate = await within(
        clock,
        LOOK_LIMIT_MS,
        ledger.counts().then(() => false),
        () => true,
      );
      this.#log(isLate ? LATE : null);
      return isLate ? LATE : null;
    } catch (error) {
      this.#log(error instanceof Error ? error.message : String(error), error);
      return publicSentence(error);
    }
  }

  #log(message: string | null, error?: unknown): void {
    if (message === this.#logged) return;
    this.#logged = message;
    const { logger } = this.#ports;
    if (message === null) logger.info({}, "ready: the ledger answers again");
    else logger.warn({ err: error ?? message }, "not ready: the ledger failed a look");
  }
}
