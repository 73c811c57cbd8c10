/** A clock that stands still until a test moves it. */
import type { Clock } from "../../src/runtime/clock.js";

/** 2026-01-01T00:00:00Z: any fixed time would do. */
const START_MS = Date.UTC(2026, 0, 1);

interface Timer {
  readonly dueMs: number;
  readonly fire: () => void;
}

export class VirtualClock implements Clock {
  #nowMs = START_MS;
  readonly #timers = new Set<Timer>();

  nowMs(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs - START_MS;
  }

  timer(delayMs: number, fire: () => void): () => void {
    const timer = { dueMs: this.#nowMs + Math.max(0, delayMs), fire };
    this.#timers.add(timer);
    return () => {
      this.#timers.delete(timer);
    };
  }

  /** Moves time on and fires what has become due, in the order in which it did. */
  advance(ms: number): void {
    const endMs = this.#nowMs + ms;
    for (;;) {
      let next: Timer | undefined;
      for (const timer of this.#timers)
        if (timer.dueMs <= endMs && (next === undefined || timer.dueMs < next.dueMs)) next = timer;
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      next.fire();
    }
    this.#nowMs = endMs;
  }
}
