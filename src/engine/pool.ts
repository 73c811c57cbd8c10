/**
 * The slots that tasks run in, and the one line in front of them. Synchronous requests and jobs
 * stand in the same line, strictly first in, first out: neither can starve the other, and sharing
 * the slots is what keeps the machine from being overfilled.
 *
 * A slot is an object that can be given back; it forgets the pool as it does, so that giving it back
 * twice is not possible. The pool never knows what runs in a slot.
 */
import { Line } from "./line.js";

/** Called once, when a slot is this caller's; from then on it must be given back. */
export type Grant = (slot: Slot) => void;

export class Slot {
  #giveBack: (() => void) | null;

  constructor(giveBack: () => void) {
    this.#giveBack = giveBack;
  }

  /** Gives the slot to the next in line. Only the first call counts. */
  release(): void {
    const giveBack = this.#giveBack;
    this.#giveBack = null;
    giveBack?.();
  }

  /** The same slot for the next job, without a way through the line; this object has it no more. */
  handOn(): Slot {
    const giveBack = this.#giveBack;
    this.#giveBack = null;
    return new Slot(giveBack ?? NOTHING);
  }
}

const NOTHING = (): void => undefined;

export class Pool {
  readonly size: number;
  #busy = 0;
  readonly #line = new Line<Grant>();

  /** @param size how many slots, >= 1. */
  constructor(size: number) {
    this.size = size;
  }

  /** Slots that are taken, also by those who still look for work to put into them. */
  get busy(): number {
    return this.#busy;
  }

  /** How many wait in line, for jobs and for synchronous requests. */
  get waiting(): number {
    return this.#line.size;
  }

  /**
   * Asks for a slot: `grant` is called at once when one is free (nobody waits then), else when it is
   * this caller's turn.
   * @returns leaves the line; null when the slot was granted at once.
   */
  enter(grant: Grant): (() => boolean) | null {
    if (this.#busy < this.size) {
      this.#busy += 1;
      this.#give(grant);
      return null;
    }
    return this.#line.push(grant);
  }

  #give(grant: Grant): void {
    const slot = new Slot(() => {
      this.#freed();
    });
    try {
      grant(slot);
    } catch (error) {
      slot.release();
      throw error;
    }
  }

  #freed(): void {
    const next = this.#line.shift();
    if (next === undefined) this.#busy -= 1;
    else this.#give(next);
  }
}
