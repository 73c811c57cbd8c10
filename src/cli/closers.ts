/** What was opened, in order, and is closed in the reverse order, each once, whatever the others do. */
import type { Logger } from "../runtime/logger.js";

export class Closers {
  readonly #logger: Logger;
  readonly #open: { readonly name: string; readonly close: () => Promise<unknown> }[] = [];

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  add(name: string, close: () => Promise<unknown>): void {
    this.#open.push({ name, close });
  }

  /** Never rejects: what can't be closed is logged, and the rest is closed all the same. */
  async closeAll(): Promise<void> {
    for (let last = this.#open.pop(); last !== undefined; last = this.#open.pop())
      try {
        await last.close();
      } catch (error) {
        this.#logger.error({ err: error, part: last.name }, "a part could not be closed");
      }
  }
}
