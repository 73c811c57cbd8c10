/**
 * A binary heap whose entries can be taken out from anywhere in O(log n): each entry knows its
 * place. Nothing stale stays behind, so its size is what it holds.
 */

export interface HeapEntry<T> {
  readonly value: T;
  /** Its place in the heap; written by the heap alone. -1 once it has left. */
  place: number;
}

export class Heap<T> {
  readonly #entries: HeapEntry<T>[] = [];
  readonly #before: (a: T, b: T) => boolean;

  /** @param before whether `a` comes out before `b`; must not change while they are in the heap. */
  constructor(before: (a: T, b: T) => boolean) {
    this.#before = before;
  }

  get size(): number {
    return this.#entries.length;
  }

  peek(): T | undefined {
    return this.#entries[0]?.value;
  }

  push(value: T): HeapEntry<T> {
    const entry: HeapEntry<T> = { value, place: this.#entries.length };
    this.#entries.push(entry);
    this.#rise(entry);
    return entry;
  }

  /** Does nothing when the entry has left already. */
  remove(entry: HeapEntry<T>): void {
    const { place } = entry;
    if (this.#entries[place] !== entry) return;
    entry.place = -1;
    const last = this.#entries.pop();
    if (last === undefined || last === entry) return;
    this.#put(last, place);
    this.#rise(last);
    this.#sink(last);
  }

  /** In no particular order. */
  *values(): Iterable<T> {
    for (const entry of this.#entries) yield entry.value;
  }

  #put(entry: HeapEntry<T>, place: number): void {
    this.#entries[place] = entry;
    entry.place = place;
  }

  #rise(entry: HeapEntry<T>): void {
    for (;;) {
      const parent = this.#entries[(entry.place - 1) >> 1];
      if (entry.place === 0 || parent === undefined || !this.#before(entry.value, parent.value))
        return;
      const { place } = parent;
      this.#put(parent, entry.place);
      this.#put(entry, place);
    }
  }

  #sink(entry: HeapEntry<T>): void {
    for (;;) {
      const left = this.#entries[2 * entry.place + 1];
      const right = this.#entries[2 * entry.place + 2];
      const first =
        left !== undefined && right !== undefined && this.#before(right.value, left.value)
          ? right
          : left;
      if (first === undefined || !this.#before(first.value, entry.value)) return;
      const { place } = first;
      this.#put(first, entry.place);
      this.#put(entry, place);
    }
  }
}
