/**
 * Turns concurrent single calls into calls with lists. One call is under way at a time, unless they
 * may overlap; what comes in meanwhile goes along with the next one. A lone call waits for nobody: it
 * leaves at the end of the present turn of the event loop, together with all that came in during that
 * turn. Lists leave in the order in which their items came.
 *
 * Callers that come back when they have been answered all come in one list, and all wait for it. Where
 * the event loop is what they wait for most of the time, calls may overlap: then callers are sent in two
 * halves, each as soon as it is there, so that the loop is at work for one while the ledger is for the
 * other.
 *
 * Lists are bounded in count and weight, and so is what waits. When a call fails, each of its callers
 * gets the error. When the ledger hung, all who waited by then get it as well: each list more would
 * wait as long, and the last caller for all of them. One that was cut off at once tells nothing about
 * the next, which goes over another connection.
 */

import { LedgerError } from "../job/errors.js";
import type { Clock } from "../runtime/clock.js";
import { atTurnEnd } from "../runtime/turn.js";

export interface BatchBounds<Item> {
  readonly maxItems: number;
  /** Largest sum of weights in one list; an item that is heavier than this goes alone. */
  readonly maxWeight: number;
  /** An item's weight, for instance its size in characters; always the same. */
  readonly weigh: (item: Item) => number;
  /** Whether calls may overlap now. */
  readonly overlap: () => boolean;
}

/** Lists of about this length are where a ledger's cost per item stops to fall; memory does not notice. */
export const MAX_BATCH_ITEMS = 500;
/** A list is copied on its way to the ledger's thread or socket: this bounds what is held twice. */
export const MAX_BATCH_CHARS = 16 * 1024 * 1024;
/** Shorter halves are not worth a call of their own. */
const SMALLEST_HALF = 4;
/** A call that fails after this long had no answer. */
const HUNG_MS = 1_000;
/**
 * Of what waits, in full lists: 100,000 items, or 640 Mi characters. A ledger that works has them done
 * within seconds, fifty submits of 10 MB at once as well; behind one that hangs more would only be
 * kept, to be refused later.
 */
export const MAX_WAITING_LISTS = { ofItems: 200, ofWeight: 40 } as const;

/** An item, and who gets its answer: one of the two is called, once, unless `resolve` throws. `reject` must not. */
export interface Waiting<Item, Result> {
  readonly item: Item;
  resolve(result: Result): void;
  /** Also with what `resolve` threw: it is a fault of this one, and its mates have answers of their own. */
  reject(error: unknown): void;
}

export class Batcher<Item, Result> {
  readonly #send: (items: readonly Item[]) => Promise<readonly Result[]>;
  readonly #clock: Clock;
  readonly #bounds: BatchBounds<Item>;
  #waiting: Waiting<Item, Result>[] = [];
  #waitingWeight = 0;
  #scheduled = false;
  #underWay = 0;
  #itemsUnderWay = 0;
  /** Half of those who waited or were under way when a list was last answered. */
  #half = Infinity;

  /** @param send answers one result per item, in order. */
  constructor(
    send: (items: readonly Item[]) => Promise<readonly Result[]>,
    clock: Clock,
    bounds: Partial<BatchBounds<Item>> = {},
  ) {
    this.#send = send;
    this.#clock = clock;
    this.#bounds = {
      maxItems: bounds.maxItems ?? MAX_BATCH_ITEMS,
      maxWeight: bounds.maxWeight ?? MAX_BATCH_CHARS,
      weigh: bounds.weigh ?? (() => 0),
      overlap: bounds.overlap ?? (() => false),
    };
  }

  /** Rejects with `ledger_unavailable` also when too much waits already. */
  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.push({ item, resolve, reject });
    });
  }

  /** As `add`, for whoever does this so often that a promise for each is felt. */
  push(waiting: Waiting<Item, Result>): void {
    const { maxItems, maxWeight, weigh } = this.#bounds;
    if (
      this.#waiting.length >= maxItems * MAX_WAITING_LISTS.ofItems ||
      this.#waitingWeight >= maxWeight * MAX_WAITING_LISTS.ofWeight
    ) {
      const many = `${String(this.#waiting.length)} calls wait for it already`;
      waiting.reject(new LedgerError("ledger_unavailable", `the ledger is too slow: ${many}`));
      return;
    }
    this.#waiting.push(waiting);
    this.#waitingWeight += weigh(waiting.item);
    this.#go();
  }

  #go(): void {
    if (this.#isHalf()) void this.#sendNext();
    else this.#schedule();
  }

  /** The check phase comes after all sockets of this turn were read: their calls share the list. */
  #schedule(): void {
    if (this.#scheduled || this.#underWay > 0 || this.#waiting.length === 0) return;
    this.#scheduled = true;
    atTurnEnd(() => {
      this.#scheduled = false;
      if (this.#underWay === 0 && this.#waiting.length > 0) void this.#sendNext();
    });
  }

  /** One of two halves is there, and need not wait for the other, nor for the end of the turn. */
  #isHalf(): boolean {
    const { length } = this.#waiting;
    if (this.#underWay > 1 || this.#half < SMALLEST_HALF || length < this.#half) return false;
    return this.#bounds.overlap();
  }

  async #sendNext(): Promise<void> {
    const batch = this.#take();
    const startedMs = this.#clock.monotonicMs();
    try {
      const results = await this.#answersTo(batch.map(({ item }) => item));
      if (results.length !== batch.length)
        throw new Error(
          `a list of ${String(batch.length)} was answered with ${String(results.length)} results`,
        );
      for (const [index, result] of results.entries()) answer(batch[index], result);
    } catch (error) {
      const hung = isUnavailable(error) && this.#clock.monotonicMs() - startedMs >= HUNG_MS;
      const failed = hung ? batch.concat(this.#takeAll()) : batch;
      for (const waiting of failed) waiting.reject(error);
    }
    this.#go();
  }

  async #answersTo(items: readonly Item[]): Promise<readonly Result[]> {
    this.#underWay += 1;
    this.#itemsUnderWay += items.length;
    try {
      return await this.#send(items);
    } finally {
      const callers = this.#itemsUnderWay + this.#waiting.length;
      this.#half = Math.min(Math.floor(callers / 2), this.#bounds.maxItems);
      this.#underWay -= 1;
      this.#itemsUnderWay -= items.length;
    }
  }

  #take(): Waiting<Item, Result>[] {
    const { maxItems, maxWeight, weigh } = this.#bounds;
    let count = 0;
    let weight = 0;
    for (const { item } of this.#waiting) {
      const next = weight + weigh(item);
      if (count > 0 && (count >= maxItems || next > maxWeight)) break;
      count += 1;
      weight = next;
    }
    this.#waitingWeight -= weight;
    return this.#waiting.splice(0, count);
  }

  #takeAll(): Waiting<Item, Result>[] {
    const all = this.#waiting;
    this.#waiting = [];
    this.#waitingWeight = 0;
    return all;
  }
}

function answer<Item, Result>(waiting: Waiting<Item, Result> | undefined, result: Result): void {
  try {
    waiting?.resolve(result);
  } catch (error) {
    waiting?.reject(error);
  }
}

function isUnavailable(error: unknown): boolean {
  return error instanceof LedgerError && error.code === "ledger_unavailable";
}
