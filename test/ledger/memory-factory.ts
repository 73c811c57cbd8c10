/** The memory ledger on a virtual clock. Its store is its process's: there is no second handle. */
import { openMemoryLedger } from "../../src/ledger/memory/memory-ledger.js";
import type { LedgerFactory } from "./harness.js";
import { VirtualClock } from "./virtual-clock.js";

export const memoryFactory: LedgerFactory = {
  shared: false,
  open() {
    const clock = new VirtualClock();
    const ledger = openMemoryLedger({ clock });
    return Promise.resolve({
      ledger,
      nowMs: () => Promise.resolve(clock.nowMs()),
      age: (ms: number) => {
        clock.advance(ms);
        return Promise.resolve();
      },
      close: () => ledger.close(),
    });
  },
};
