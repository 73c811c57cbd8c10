/** When to come back after a refusal: from how fast slots come free. */

/** HTTP's `Retry-After` is in whole seconds; a minute is as far as a guess reaches. */
const SHORTEST_S = 1;
const LONGEST_S = 60;

/**
 * @param ahead how many must get a slot before the caller would; >= 1.
 * @param typicalRunMs null while nothing has been measured.
 * @returns whole seconds, 1 to 60.
 */
export function retryAfterS(ahead: number, slots: number, typicalRunMs: number | null): number {
  const seconds = Math.ceil((ahead * (typicalRunMs ?? 0)) / slots / 1_000);
  return Math.min(Math.max(seconds, SHORTEST_S), LONGEST_S);
}
