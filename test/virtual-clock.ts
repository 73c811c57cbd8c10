/**
 * A clock that stands still until a test moves it. Timers fire in order of their time; between two
 * of them the event loop turns until promises and immediates have had their say, so that what one
 * timer sets off is seen before the next one fires.
 */
import type { Clock } from "../src/runtime/clock.js";
import { turnEnd } from "../src/runtime/turn.js";

interface Armed {
  readonly atMs: number;
  readonly fire: () => void;
}

/** Turns of the event loop that a chain of promises and batched calls may need; cheap, so generous. */
const TURNS = 20;

/** Lets everything that is ready to run do so, without moving any clock. */
export async function settled(turns: number = TURNS): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) await turnEnd();
}

export class VirtualClock implements Clock {
  #nowMs: number;
  readonly #startMs: number;
  readonly #armed = new Set<Armed>();

  /** @param startMs wall time at the start, ms since the Unix epoch. */
  constructor(startMs: number = Date.UTC(2030, 0, 1)) {
    this.#startMs = startMs;
    this.#nowMs = startMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs - this.#startMs;
  }

  timer(delayMs: number, fire: () => void): () => void {
    const armed: Armed = { atMs: this.#nowMs + Math.max(delayMs, 0), fire };
    this.#armed.add(armed);
    return () => {
      this.#armed.delete(armed);
    };
  }

  /** How many timers wait; zero once everything was stopped. */
  get pendingTimers(): number {
    return this.#armed.size;
  }

  /** Moves the clock, and fires what is due on the way. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    await settled();
    for (let next = this.#next(untilMs); next !== undefined; next = this.#next(untilMs)) {
      this.#armed.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.fire();
      await settled();
    }
    this.#nowMs = untilMs;
  }

  /** Moves the clock without firing anything in between, as for a process that was suspended. */
  async suspend(ms: number): Promise<void> {
    this.#nowMs += ms;
    await this.advance(0);
  }

  #next(untilMs: number): Armed | undefined {
    let first: Armed | undefined;
    for (const armed of this.#armed)
      if (armed.atMs <= untilMs && (first === undefined || armed.atMs < first.atMs)) first = armed;
    return first;
  }
}
