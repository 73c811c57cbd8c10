/** What this worker has done so far, for health and its row among the workers. */
import type { End } from "../ledger/ledger.js";

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
  count(end: End): void {
    switch (end.event) {
      case "succeed":
        this.processed += 1;
        break;
      case "fail":
      case "time_out":
        this.failed += 1;
        break;
      case "stop":
        this.cancelled += 1;
        break;
      case "retry":
      case "release":
        return;
      default:
        end satisfies never;
    }
    this.#ended();
  }
}
