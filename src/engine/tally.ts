/** What this worker has done so far, for health and its row among the workers. */
import type { EndLabel } from "./ending.js";

export class Tally {
  processed = 0;
  failed = 0;
  cancelled = 0;
  readonly #ended: () => void;

  /** @param ended called for each job that became terminal. */
  constructor(ended: () => void) {
    this.#ended = ended;
  }

  /** Counts an end that was recorded. What went back to the queue is no end. */
  count(end: EndLabel): void {
    switch (end) {
      case "succeeded":
        this.processed += 1;
        break;
      case "failed":
      case "timed_out":
        this.failed += 1;
        break;
      case "cancelled":
        this.cancelled += 1;
        break;
      case "retried":
      case "released":
        return;
      default:
        end satisfies never;
    }
    this.#ended();
  }
}
