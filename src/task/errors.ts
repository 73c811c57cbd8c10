/**
 * What a handler throws to say how its job goes on. They are recognised by a registered symbol, not
 * by class: a task file may come with its own copy of this package, and its thread has another one.
 */

const DISPOSITION = Symbol.for("jobtable.disposition");

/** A year: a pause beyond it is a mistake, and a time that far off must still be one that every ledger can hold. */
const MAX_AFTER_MS = 365 * 86_400_000;

export interface RetryOptions extends ErrorOptions {
  /** Pause before the next attempt, in ms, at most a year; left out: the usual backoff. */
  readonly afterMs?: number;
}

/** Throw it to fail this attempt and be tried again, if attempts are left. */
export class Retry extends Error {
  readonly afterMs: number | null;
  readonly [DISPOSITION] = "retry";

  /** @throws RangeError when `afterMs` is not a number of ms from 0 to a year. */
  constructor(message: string, options: RetryOptions = {}) {
    super(message, options);
    this.name = "Retry";
    if (options.afterMs !== undefined && !isPause(options.afterMs))
      throw new RangeError(
        `Retry: afterMs must be 0 to ${String(MAX_AFTER_MS)} ms, got ${String(options.afterMs)}`,
      );
    this.afterMs = options.afterMs ?? null;
  }
}

/** Throw it to fail the job for good, whatever attempts are left. */
export class Discard extends Error {
  readonly [DISPOSITION] = "discard";

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "Discard";
  }
}

/** What a handler asked for by what it threw; `default` for everything but `Retry` and `Discard`. */
export type RetryWish = "default" | "never" | { readonly afterMs: number };

/** Reads it off any value, of this copy of the package or another. May run a hostile getter, and throw what that throws. */
export function retryWish(thrown: unknown): RetryWish {
  if (typeof thrown !== "object" || thrown === null || !(DISPOSITION in thrown)) return "default";
  if (thrown[DISPOSITION] === "discard") return "never";
  if (thrown[DISPOSITION] !== "retry" || !("afterMs" in thrown)) return "default";
  return isPause(thrown.afterMs) ? { afterMs: thrown.afterMs } : "default";
}

function isPause(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= MAX_AFTER_MS;
}
