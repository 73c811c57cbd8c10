/**
 * The ended jobs in the order in which they ended: retention forgets from the front. First in, first
 * out, in constant time each.
 */
import type { Entry } from "./entry.js";

/** Below this many empty places at the front the array is not worth cutting. */
const FEW_GAPS = 256;

export class FinishedLine {
  #entries: Entry[] = [];
  /** Everything before it has been taken. */
  #front = 0;

  get size(): number {
    return this.#entries.length - this.#front;
  }

  add(entry: Entry): void {
    this.#entries.push(entry);
  }

  oldest(): Entry | undefined {
    return this.#entries[this.#front];
  }

  dropOldest(): void {
    if (this.size === 0) return;
    this.#front += 1;
    if (this.#front < FEW_GAPS || this.#front * 2 < this.#entries.length) return;
    this.#entries = this.#entries.slice(this.#front);
    this.#front = 0;
  }
}
