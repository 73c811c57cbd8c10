/** The clock port. Everything that needs time takes a `Clock`; tests pass a virtual one. */

export interface Clock {
  /** Wall time, ms since the Unix epoch. */
  nowMs(): number;
  /** Never goes back; for durations. Fractional ms. */
  monotonicMs(): number;
  /** Calls `fire` once after `delayMs`; the answer cancels it. A timer never keeps the process alive. */
  timer(delayMs: number, fire: () => void): () => void;
}

/** setTimeout fires at once for longer delays than this (a signed 32-bit count of ms). */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  timer(delayMs, fire) {
    let handle: NodeJS.Timeout;
    const arm = (leftMs: number): void => {
      const stepMs = Math.min(Math.max(leftMs, 0), LONGEST_TIMEOUT_MS);
      handle = setTimeout(() => {
        if (leftMs > stepMs) arm(leftMs - stepMs);
        else fire();
      }, stepMs);
      handle.unref();
    };
    arm(delayMs);
    return () => {
      clearTimeout(handle);
    };
  },
};
