/**
 * Whether the ledger answers, as the engine's own calls find out. A fault belongs to the verb that
 * met it and goes when that verb works again: with a full disk, reads that still work must not hide
 * that nothing can be recorded. Only verbs that are tried again by themselves report here, so that
 * every fault ends by itself. Logged once per change, not per try.
 */
import { ERRORS, JobtableError, LedgerError } from "../job/errors.js";
import type { Logger } from "../runtime/logger.js";

export type WatchedVerb = "claim" | "settle" | "heartbeat" | "sweep" | "expire" | "evict";

const DISPATCH: readonly WatchedVerb[] = ["settle", "heartbeat", "claim"];
/** Forgetting old jobs and ending overdue ones: what fails there alone keeps nobody from beating. */
const HOUSEKEEPING: readonly WatchedVerb[] = ["expire", "evict"];
const MAINTENANCE: readonly WatchedVerb[] = ["sweep", ...HOUSEKEEPING];

export class LedgerFaults {
  readonly #logger: Logger;
  readonly #faults = new Map<WatchedVerb, unknown>();
  readonly #onRecovered: (() => void)[] = [];

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** One fault of those that last, as a sentence that anyone may read; null while there is none. */
  get fault(): string | null {
    for (const fault of this.#faults.values()) return publicSentence(fault);
    return null;
  }

  /** One that keeps jobs from being run and recorded; maintenance that fails does not. */
  get dispatchFault(): string | null {
    return this.#firstOf(DISPATCH);
  }

  /** One that keeps old jobs, overdue ones or those of lost workers from being cleared away. */
  get maintenanceFault(): string | null {
    return this.#firstOf(MAINTENANCE);
  }

  /** Whether others may be silent for no fault of their own: the ledger does not take what they say. */
  get isAway(): boolean {
    return [...this.#faults.keys()].some((verb) => !HOUSEKEEPING.includes(verb));
  }

  has(verb: WatchedVerb): boolean {
    return this.#faults.has(verb);
  }

  failed(verb: WatchedVerb, error: unknown): void {
    const known = this.#faults.has(verb);
    this.#faults.set(verb, error);
    if (!known)
      this.#logger.error({ verb, err: error }, "the ledger failed; trying again until it answers");
  }

  worked(verb: WatchedVerb): void {
    if (this.#faults.size === 0 || !this.#faults.delete(verb)) return;
    this.#logger.info({ verb }, "the ledger answers again");
    if (HOUSEKEEPING.includes(verb)) return;
    for (const recovered of this.#onRecovered) recovered();
  }

  /** Calls `recovered` each time that a fault has ended which `isAway` tells of. */
  onRecovered(recovered: () => void): void {
    this.#onRecovered.push(recovered);
  }

  #firstOf(verbs: readonly WatchedVerb[]): string | null {
    const verb = verbs.find((each) => this.#faults.has(each));
    return verb === undefined ? null : publicSentence(this.#faults.get(verb));
  }
}

/** What is wrong with a ledger, for readers who may be anyone: no paths, no inner messages. */
export function publicSentence(error: unknown): string {
  return error instanceof JobtableError ? ERRORS[error.code].message : "the ledger does not answer";
}

/** Whether trying the same call again can't help: the ledger is closed, or not one that we can use. */
export function isFinal(error: unknown): boolean {
  return (
    error instanceof LedgerError &&
    (error.code === "ledger_closed" || error.code === "ledger_newer")
  );
}
