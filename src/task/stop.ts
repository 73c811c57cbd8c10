/**
 * Whether, and why, a run should stop. The signal that says so to the handler is made when the handler
 * asks for it: most never do, and making one costs more than all else around a small run.
 */
export class Stop {
  #controller: AbortController | null = null;
  #reason: DOMException | null = null;

  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      if (this.#reason !== null) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  get isAsked(): boolean {
    return this.#controller === null ? this.#reason !== null : this.#controller.signal.aborted;
  }

  /**
   * Only the first call counts.
   * @param why the message of the signal's reason, an AbortError: fetch, streams and timers hand it on, and code that asks for one finds it.
   */
  ask(why: string): void {
    if (this.#reason !== null) return;
    this.#reason = new DOMException(why, "AbortError");
    this.#controller?.abort(this.#reason);
  }

  /** @throws the reason, once there is one. */
  throwIfAsked(): void {
    if (this.#controller !== null) this.#controller.signal.throwIfAborted();
    else if (this.#reason !== null) throw this.#reason;
  }
}
