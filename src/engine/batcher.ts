/**
 * Turns concurrent single calls into calls with lists. One call is under way at a time; what comes
 * in meanwhile goes along with the next one. A lone call waits for nobody: it leaves at the end of
 * the present turn of the event loop, together with all that came in during that turn.
 *
 * Lists are bounded in count and weight. When a call fails, each of its callers gets the error.
 */

import { atTurnEnd } from "../runtime/turn.js";

export interface BatchBounds<Item> {
  readonly maxItems: number;
  /** Largest sum of weights in one list; an item that is heavier than this goes alone. */
  readonly maxWeight: number;
  /** An item's weight, for instance its size in characters. */
  readonly weigh: (item: Item) => number;
}

/** Lists of about this length are where a ledger's cost per item stops to fall; memory does not notice. */
export const MAX_BATCH_ITEMS = 500;
/** A list is copied on its way to the ledger's thread or socket: this bounds what is held twice. */
export const MAX_BATCH_CHARS = 16 * 1024 * 1024;

/** An item, and who gets its answer: one of the two is called, once. They must not throw. */
export interface Waiting<Item, Result> {
  readonly item: Item;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

export class Batcher<Item, Result> {
  readonly #send: (items: readonly Item[]) => Promise<readonly Result[]>;
  readonly #bounds: BatchBounds<Item>;
  #waiting: Waiting<Item, Result>[] = [];
  #scheduled = false;
  #underWay = false;

  /** @param send answers one result per item, in order. */
  constructor(
    send: (items: readonly Item[]) => Promise<readonly Result[]>,
    bounds: Partial<BatchBounds<Item>> = {},
  ) {
    this.#send = send;
    this.#bounds = {
      maxItems: bounds.maxItems ?? MAX_BATCH_ITEMS,
      maxWeight: bounds.maxWeight ?? MAX_BATCH_CHARS,
      weigh: bounds.weigh ?? (() => 0),
    };
  }

  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.push({ item, resolve, reject });
    });
  }

  /** As `add`, for whoever does this so often that a promise for each is felt. */
  push(waiting: Waiting<Item, Result>): void {
    this.#waiting.push(waiting);
    this.#schedule();
  }

  /** The check phase comes after all sockets of this turn were read: their calls share the list. */
  #schedule(): void {
    if (this.#scheduled || this.#underWay || this.#waiting.length === 0) return;
    this.#scheduled = true;
    atTurnEnd(() => {
      this.#scheduled = false;
      void this.#sendNext();
    });
  }

  async #sendNext(): Promise<void> {
    const batch = this.#take();
    this.#underWay = true;
    try {
      const results = await this.#send(batch.map(({ item }) => item));
      if (results.length !== batch.length)
        throw new Error(
          `a list of ${String(batch.length)} was answered with ${String(results.length)} results`,
        );
      for (const [index, result] of results.entries()) batch[index]?.resolve(result);
    } catch (error) {
      for (const waiting of batch) waiting.reject(error);
    } finally {
      this.#underWay = false;
      this.#schedule();
    }
  }

  #take(): Waiting<Item, Result>[] {
    const { maxItems, maxWeight, weigh } = this.#bounds;
    let count = 0;
    let weight = 0;
    for (const { item } of this.#waiting) {
      weight += weigh(item);
      if (count > 0 && (count >= maxItems || weight > maxWeight)) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }
}
