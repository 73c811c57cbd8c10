/** The SQLite ledger on a virtual clock, in a folder of its own; a second handle is a second thread on the same file. */
import { accessSync, constants } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Ledger } from "../../src/ledger/ledger.js";
import { openSqliteLedger } from "../../src/ledger/sqlite/sqlite-ledger.js";
import { silentLogger } from "../../src/runtime/logger.js";
import type { LedgerFactory } from "./harness.js";
import { VirtualClock } from "./virtual-clock.js";

/** In memory where the system has such a folder: what is tested here does not depend on the disk. */
export const FAST_FOLDER = isWritable("/dev/shm") ? "/dev/shm" : tmpdir();

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

export const sqliteFactory: LedgerFactory = {
  shared: true,
  async open() {
    const clock = new VirtualClock();
    const folder = await mkdtemp(join(FAST_FOLDER, "jobtable-sqlite-"));
    const opened: Ledger[] = [];
    const open = async (): Promise<Ledger> => {
      const path = join(folder, "jobs.db");
      const ledger = await openSqliteLedger({ path, clock, logger: silentLogger });
      opened.push(ledger);
      return ledger;
    };
    return {
      ledger: await open(),
      second: open,
      nowMs: () => Promise.resolve(clock.nowMs()),
      age: (ms: number) => {
        clock.advance(ms);
        return Promise.resolve();
      },
      close: async () => {
        await Promise.all(opened.map((ledger) => ledger.close()));
        await rm(folder, { recursive: true });
      },
    };
  },
};
