/**
 * What a ledger's tests need from it: a store of its own per test, and time that the test moves.
 * PostgreSQL has its own clock, so time does not pass for the tests by turning a clock: everything
 * in the store is made to look older. Tests compare ages of minutes, so that the moments which a
 * real clock adds never matter.
 */
import { test } from "vitest";
import type { Ledger } from "../../src/ledger/ledger.js";

export interface LedgerHarness {
  /** A handle on a store of its own, empty. */
  readonly ledger: Ledger;
  /** Opens one more handle on the same store, as another process would. Left out where a store can't be shared. */
  readonly second?: () => Promise<Ledger>;
  /** The ledger's own clock, ms since the epoch. */
  nowMs(): Promise<number>;
  /** Makes everything in the store look `ms` older: jobs, workers, due times. A virtual clock goes on; SQL subtracts. */
  age(ms: number): Promise<void>;
  /** Closes every handle, also those that the test has closed already, and removes the store. */
  close(): Promise<void>;
}

export interface LedgerFactory {
  /** Whether `open` gives `second`: tests are registered before anything is open. */
  readonly shared: boolean;
  open(): Promise<LedgerHarness>;
}

/** A harness whose store is shared. */
export type SharedHarness = LedgerHarness & { readonly second: () => Promise<Ledger> };

/** Registers tests, each on a store of its own that is closed whatever happens. */
export class Cases {
  readonly #factory: LedgerFactory;

  constructor(factory: LedgerFactory) {
    this.#factory = factory;
  }

  readonly check = (title: string, body: (harness: LedgerHarness) => Promise<void>): void => {
    test(title, () => withHarness(this.#factory, body));
  };

  /**
   * For two handles on one store. Not registered for a ledger whose store lives in one process: there
   * a second handle is the first one, and the test would say nothing that its single form does not.
   */
  readonly checkShared = (title: string, body: (harness: SharedHarness) => Promise<void>): void => {
    if (!this.#factory.shared) return;
    test(`two handles: ${title}`, () =>
      withHarness(this.#factory, async (harness) => {
        if (!isShared(harness))
          throw new Error("a factory that says shared: true must give `second`");
        await body(harness);
      }));
  };
}

export async function withHarness(
  factory: LedgerFactory,
  body: (harness: LedgerHarness) => Promise<void>,
): Promise<void> {
  const harness = await factory.open();
  try {
    await body(harness);
  } finally {
    await harness.close();
  }
}

export function isShared(harness: LedgerHarness): harness is SharedHarness {
  return harness.second !== undefined;
}
