/** Sweeps a table of any size in bounded pieces, with turns of the event loop in between for everyone else. */

import { turnEnd } from "../runtime/turn.js";

/** Rows per statement: some milliseconds on a ledger on disk, so that others wait no longer than that. */
export const SWEEP_CHUNK = 500;

/**
 * @param sweep handles at most SWEEP_CHUNK rows and answers how many it did.
 * @param mayGoOn asked before each further piece.
 * @returns how many were handled in all.
 */
export async function inChunks(
  sweep: (chunk: number) => Promise<number>,
  mayGoOn: () => boolean,
): Promise<number> {
  let total = 0;
  for (;;) {
    const count = await sweep(SWEEP_CHUNK);
    total += count;
    if (count < SWEEP_CHUNK || !mayGoOn()) return total;
    await turnEnd();
  }
}
