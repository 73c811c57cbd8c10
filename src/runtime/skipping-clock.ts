/**
 * Real time that can be made to jump ahead, so that what is due later need not be waited for. A jump
 * fires the timers that fall into it, in order, as after a suspended process has come back.
 */
import { systemClock, type Clock } from "./clock.js";

interface Armed {
  /** Monotonic, ms. */
  readonly dueMs: number;
  readonly fire: () => void;
  cancelReal: () => void;
}

export class SkippingClock implements Clock {
  readonly #real: Clock;
  readonly #armed = new Set<Armed>();
  #skippedMs = 0;

  constructor(real: Clock = systemClock) {
    this.#real = real;
  }

  nowMs(): number {
    return this.#real.nowMs() + this.#skippedMs;
  }

  monotonicMs(): number {
    return this.#real.monotonicMs() + this.#skippedMs;
  }

  timer(delayMs: number, fire: () => void): () => void {
    const armed: Armed = { dueMs: this.monotonicMs() + delayMs, fire, cancelReal: () => undefined };
    this.#armed.add(armed);
    this.#arm(armed);
    return () => {
      this.#armed.delete(armed);
      armed.cancelReal();
    };
  }

  skip(ms: number): void {
    this.#skippedMs += ms;
    const nowMs = this.monotonicMs();
    const inOrder = [...this.#armed].sort((one, other) => one.dueMs - other.dueMs);
    for (const armed of inOrder) {
      armed.cancelReal();
      if (armed.dueMs > nowMs) this.#arm(armed);
      else this.#fire(armed);
    }
  }

  #arm(armed: Armed): void {
    armed.cancelReal = this.#real.timer(armed.dueMs - this.monotonicMs(), () => {
      this.#fire(armed);
    });
  }

  /** Unless it was cancelled, by one that fired before it. */
  #fire(armed: Armed): void {
    if (this.#armed.delete(armed)) armed.fire();
  }
}
