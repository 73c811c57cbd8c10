/** When a failed job is due again: exponential backoff, and jitter so that many do not come back at once. */

export interface Backoff {
  /** Pause after the first failure, in ms. */
  readonly baseMs: number;
  /** Longest pause, in ms. */
  readonly maxMs: number;
}

/** One second lets a restart pass; an hour keeps the last attempts within a working day. */
export const DEFAULT_BACKOFF: Backoff = { baseMs: 1_000, maxMs: 3_600_000 };

/** @param attempt the attempt that failed, from 1. */
export function delayWithoutJitter(attempt: number, backoff: Backoff = DEFAULT_BACKOFF): number {
  return Math.min(backoff.maxMs, backoff.baseMs * 2 ** Math.max(0, attempt - 1));
}

/**
 * "Equal jitter": half of the delay is fixed, half is random
 * (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
 * @param unit uniform in [0, 1).
 */
export function withJitter(delayMs: number, unit: number): number {
  return Math.round(delayMs / 2 + (delayMs / 2) * unit);
}
