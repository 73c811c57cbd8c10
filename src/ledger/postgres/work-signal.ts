/**
 * When to tell other processes that there is work. A submit carries the message itself, in its own
 * transaction, unless one was sent a moment ago; what was submitted since is then made up for by one
 * message at the end of that moment. Thousands of submits in a second so wake the listeners some
 * hundred times, and a lone one still wakes them with its commit.
 */
import type { Clock } from "../../runtime/clock.js";

/** Shorter than anybody notices, long enough to collect the submits of a burst. */
const MOMENT_MS = 4;

export class WorkSignal {
  readonly #clock: Clock;
  readonly #send: () => void;
  #sentAtMs = -Infinity;
  #cancelTimer: (() => void) | null = null;

  /** @param send sends the message by itself; must not throw. */
  constructor(clock: Clock, send: () => void) {
    this.#clock = clock;
    this.#send = send;
  }

  /** Whether the submit that is about to be sent shall carry the message. */
  takesAlong(): boolean {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#sentAtMs < MOMENT_MS) return false;
    this.#sentAtMs = nowMs;
    return true;
  }

  /** A submit without the message has been recorded. */
  owe(): void {
    if (this.#cancelTimer !== null) return;
    const waitMs = this.#sentAtMs + MOMENT_MS - this.#clock.monotonicMs();
    this.#cancelTimer = this.#clock.timer(waitMs, () => {
      this.settle();
    });
  }

  /** Sends what is owed, if anything, now. */
  settle(): void {
    if (this.#cancelTimer === null) return;
    this.#cancelTimer();
    this.#cancelTimer = null;
    this.#sentAtMs = this.#clock.monotonicMs();
    this.#send();
  }
}
