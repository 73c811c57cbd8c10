/** Why a step has to end before it is done: the run was aborted, or its time is up. */
import type { Clock } from "../../runtime/clock.js";

export type StopReason = "cancelled" | "timed_out";

/** The first reason stays; nothing is told after `release`. */
export class StopRequest {
  #reason: StopReason | null = null;
  readonly #listeners = new Set<() => void>();
  readonly #release: () => void;

  /** @param limitMs null: none. */
  constructor(signal: AbortSignal, limitMs: number | null, clock: Clock) {
    const abort = (): void => this.#stop("cancelled");
    signal.addEventListener("abort", abort);
    const cancelTimer =
      limitMs === null ? () => undefined : clock.timer(limitMs, () => this.#stop("timed_out"));
    this.#release = () => {
      signal.removeEventListener("abort", abort);
      cancelTimer();
      this.#listeners.clear();
    };
    if (signal.aborted) abort();
  }

  get reason(): StopReason | null {
    return this.#reason;
  }

  /** Calls `listener` when there is a reason, at once where there is one. */
  onStop(listener: () => void): void {
    if (this.#reason === null) this.#listeners.add(listener);
    else listener();
  }

  release(): void {
    this.#release();
  }

  #stop(reason: StopReason): void {
    if (this.#reason !== null) return;
    this.#reason = reason;
    for (const listener of this.#listeners) listener();
  }
}
