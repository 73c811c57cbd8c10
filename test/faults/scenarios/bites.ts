/** Whether the faults of a run have met: sentences for a run that has shown less than it promises. */
import type { Bite, Shape } from "../scenario.js";

/** Of the journal's times, which are taken a moment after the ledger's. */
const CLOCK_TOLERANCE_MS = 30_000;

/** @returns the first of these deeds that was never done, in words; null when all were. */
export function undone({ count }: Bite, deeds: readonly string[]): string | null {
  const deed = deeds.find((each) => count(each) === 0);
  return deed === undefined ? null : `the jobs were over before this was done: ${deed}`;
}

/** @returns whose clock was not as wrong as it was told to be, in words. */
export function rightClocks(
  { clockOffMs }: Bite,
  { clockShifts = {} }: Pick<Shape, "clockShifts">,
): string | null {
  for (const [seat, shiftMs] of Object.entries(clockShifts)) {
    // Servers run nothing that writes down its time.
    if (!seat.startsWith("worker")) continue;
    const offMs = clockOffMs(seat);
    if (offMs === undefined) return `${seat} ran nothing by its wrong clock`;
    if (Math.abs(offMs - shiftMs) > CLOCK_TOLERANCE_MS)
      return `the clock of ${seat} was off by ${String(offMs)} ms, not ${String(shiftMs)}`;
  }
  return null;
}
