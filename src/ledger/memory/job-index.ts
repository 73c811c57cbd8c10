/**
 * All records by id, and by idempotency key: maps for looks, and one array in the order of ids for lists. Ids are made in
 * order, so adding is an append; what retention forgets stays in the array as a tombstone until half
 * of it is tombstones.
 */
import type { Entry } from "./entry.js";

/** Below this many tombstones the array is not worth rebuilding. */
const FEW_TOMBSTONES = 256;

export class JobIndex {
  readonly #byId = new Map<string, Entry>();
  /** Those that have one. */
  readonly #byKey = new Map<string, Entry>();
  #inOrder: Entry[] = [];
  #tombstones = 0;

  get size(): number {
    return this.#byId.size;
  }

  get(jobId: string): Entry | undefined {
    return this.#byId.get(jobId);
  }

  /** The job that has this idempotency key. */
  withKey(key: string): Entry | undefined {
    return this.#byKey.get(key);
  }

  add(entry: Entry): void {
    const { jobId, idempotencyKey } = entry.job;
    this.#byId.set(jobId, entry);
    if (idempotencyKey !== null) this.#byKey.set(idempotencyKey, entry);
    const last = this.#inOrder.at(-1);
    if (last === undefined || last.job.jobId < jobId) this.#inOrder.push(entry);
    else this.#inOrder.splice(this.#firstNotBelow(jobId), 0, entry);
  }

  forget(entry: Entry): void {
    const { jobId, idempotencyKey } = entry.job;
    if (!this.#byId.delete(jobId)) return;
    if (idempotencyKey !== null) this.#byKey.delete(idempotencyKey);
    entry.evicted = true;
    entry.payloadJson = null;
    entry.resultJson = null;
    this.#tombstones += 1;
    if (this.#tombstones < FEW_TOMBSTONES || this.#tombstones * 2 < this.#inOrder.length) return;
    this.#inOrder = this.#inOrder.filter((other) => !other.evicted);
    this.#tombstones = 0;
  }

  /** Newest first, from the newest id below `cursor` (or of all). */
  *newestBelow(cursor: string | undefined): Iterable<Entry> {
    const inOrder = this.#inOrder;
    let at = cursor === undefined ? inOrder.length : this.#firstNotBelow(cursor);
    while (at > 0) {
      at -= 1;
      const entry = inOrder[at];
      if (entry !== undefined && !entry.evicted) yield entry;
    }
  }

  #firstNotBelow(jobId: string): number {
    let low = 0;
    let high = this.#inOrder.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const entry = this.#inOrder[middle];
      if (entry !== undefined && entry.job.jobId < jobId) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
