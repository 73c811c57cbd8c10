/**
 * How long answers and news may take while faults are played: sums of what the product waits for, and
 * of what a machine needs that starts processes all the time.
 */
import type { Shape } from "./scenario.js";

export interface Limits {
  /** From a job's end, or from a poll's begin if that was later, to the poll's answer, ms. */
  readonly newsMs: number;
  /** From a request to its answer, without what it waits for on purpose, ms. */
  readonly answerMs: number;
}

/**
 * Two cores run a dozen processes, of which one is always starting. With nobody killed one look in a
 * hundred took 3 s, and its news 5 s; what is measured here counts the runner's own delays, too.
 */
const BUSY_MS = 15_000;
/** Who is not told looks once a second; a look that failed is repeated after as long. */
const LOOKS_MS = 2_000;
/** Who is stopped may hold the store's lock: the longest pause that any scenario makes. */
const HELD_MS = 4_000;
/** A call that is never answered ends after so long (src/ledger/postgres/connections.ts); SQLite waits 10 s for its lock. */
const CALL_MS = 15_000;
/** A listening connection that is dead is noticed by its probes (listener.ts): 10 s between two, 5 s for an answer. */
const DEAF_MS = 15_000;
/** Lost news come with the end of a poll, which takes a minute at least (traffic.ts). */
const LOST_MS = 55_000;
const HANGS_MS = 120_000;

/** @param brief only what is lost or hangs is found: how busy the machine is that runs the tests, nobody knows. */
export function limitsOf({ proxy = false }: Pick<Shape, "proxy">, brief: boolean): Limits {
  if (brief) return { newsMs: LOST_MS, answerMs: HANGS_MS };
  // Connections that swallow: nothing is heard, and the first look is not answered either.
  const silenceMs = proxy ? DEAF_MS + CALL_MS : 0;
  return {
    newsMs: LOOKS_MS + HELD_MS + silenceMs + BUSY_MS,
    // A call may wait for those before it, which end together, and then for itself.
    answerMs: 2 * CALL_MS + BUSY_MS,
  };
}
