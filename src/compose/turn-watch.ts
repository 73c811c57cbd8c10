/**
 * Tells a main thread that is held up from a process that was stopped (SIGSTOP, a frozen container, a
 * machine that slept): of that one no thread had a turn, so the watching thread's own look comes as
 * late. Time in which nobody had a turn counts against nobody. Pure: it is told what time it is.
 */

/** A look that is late by less may be a busy machine's doing, on which the main thread spins all the same. */
const LEAST_STOP_MS = 1_000;

export interface Look {
  readonly nowMs: number;
  /** When this look was to happen. */
  readonly dueMs: number;
  /** The number that the main thread counts up. */
  readonly turns: number;
}

export interface Seen {
  /** It has had turns since the last look. */
  readonly moved: boolean;
  /** For how long it had none, ms. */
  readonly heldUpMs: number;
}

export class TurnWatch {
  readonly #leastStopMs: number;
  #turns = -1;
  #movedMs: number;

  constructor(lookEveryMs: number, nowMs: number) {
    this.#leastStopMs = Math.max(lookEveryMs, LEAST_STOP_MS);
    this.#movedMs = nowMs;
  }

  look({ nowMs, dueMs, turns }: Look): Seen {
    const lateMs = nowMs - dueMs;
    if (lateMs > this.#leastStopMs) this.#movedMs += lateMs;
    const heldUpMs = nowMs - this.#movedMs;
    const moved = turns !== this.#turns;
    if (moved) {
      this.#turns = turns;
      this.#movedMs = nowMs;
    }
    return { moved, heldUpMs };
  }
}
