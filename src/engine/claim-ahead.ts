/**
 * How many jobs a worker may hold beyond its slots. One claim per free slot costs a write to the
 * ledger for every few jobs, which is nothing next to a job of ten milliseconds and everything next
 * to one of ten microseconds. So only where runs are tiny, and while more is known to wait, the
 * worker fetches what it will have run within a moment. Pure arithmetic.
 */

/** Runs at or above this are never claimed ahead: their claim costs less than a tenth of them. */
export const TINY_RUN_MS = 2;
/** Work for this long is fetched at once: short enough that nobody notices that it waits here. */
const HORIZON_MS = 10;
/** The buffer is refilled by halves: a list of 512 is where a claim's cost per job stops to fall. */
const MAX_AHEAD = 1_024;
/** Jobs beyond the slots that may wait for a slot, or have run and wait for their end to be recorded. */
export const MAX_UNSETTLED = 2 * MAX_AHEAD;
/** Payloads held ahead, in characters; large inputs are fetched one by one. */
const MAX_AHEAD_CHARS = 4 * 1024 * 1024;
/** A job that waited here for this long without a slot goes back, so that another worker can have it. */
export const MAX_BUFFERED_MS = 100;

export interface AheadOf {
  readonly slots: number;
  /** Null while nothing has been measured. */
  readonly typicalRunMs: number | null;
  /** Typical size of a payload, in characters; null while nothing has been measured. */
  readonly typicalPayloadChars: number | null;
}

export function claimAhead({ slots, typicalRunMs, typicalPayloadChars }: AheadOf): number {
  if (typicalRunMs === null || typicalPayloadChars === null) return 0;
  if (typicalRunMs >= TINY_RUN_MS) return 0;
  const withinHorizon = Math.floor((slots * HORIZON_MS) / Math.max(typicalRunMs, 0.001));
  const withinMemory = Math.floor(MAX_AHEAD_CHARS / Math.max(typicalPayloadChars, 1));
  return Math.min(withinHorizon, withinMemory, MAX_AHEAD);
}
