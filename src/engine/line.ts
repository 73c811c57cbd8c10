/**
 * A waiting line: first in, first out, and anyone may leave from the middle. Every operation is
 * O(1), whatever the length (a doubly linked list; an array or a Set would pay for gaps).
 */

interface Node<T> {
  readonly value: T;
  before: Node<T> | null;
  after: Node<T> | null;
  inLine: boolean;
}

export class Line<T> {
  #first: Node<T> | null = null;
  #last: Node<T> | null = null;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The one at the head; undefined when nobody waits. */
  get head(): T | undefined {
    return this.#first?.value;
  }

  /** @returns leaves the line; false when it was no longer in it. */
  push(value: T): () => boolean {
    const node: Node<T> = { value, before: this.#last, after: null, inLine: true };
    if (this.#last === null) this.#first = node;
    else this.#last.after = node;
    this.#last = node;
    this.#size += 1;
    return () => this.#leave(node);
  }

  shift(): T | undefined {
    const node = this.#first;
    if (node === null) return undefined;
    this.#leave(node);
    return node.value;
  }

  #leave(node: Node<T>): boolean {
    if (!node.inLine) return false;
    node.inLine = false;
    if (node.before === null) this.#first = node.after;
    else node.before.after = node.after;
    if (node.after === null) this.#last = node.before;
    else node.after.before = node.before;
    this.#size -= 1;
    return true;
  }
}
