/** The end of a request from outside: its client has gone, or the server closes. */
import type { ServerResponse } from "node:http";
import type { LeaveSignal } from "../engine/api.js";

/** For one listener, which is all that a wait or a run adds. */
export class Leaving implements LeaveSignal {
  aborted = false;
  #listener: (() => void) | null = null;
  readonly #response: ServerResponse;

  /** Listens until `release`. */
  constructor(response: ServerResponse) {
    this.#response = response;
    response.on("close", this.abort);
  }

  readonly abort = (): void => {
    this.aborted = true;
    this.#listener?.();
  };

  addEventListener(_: "abort", listener: () => void): void {
    this.#listener = listener;
  }

  removeEventListener(): void {
    this.#listener = null;
  }

  /** Whether the client closed the connection; an abort by anyone else is none. */
  get isGone(): boolean {
    return this.#response.destroyed || this.#response.closed;
  }

  /** To be called in `finally`. */
  release(): void {
    this.#response.removeListener("close", this.abort);
  }
}
