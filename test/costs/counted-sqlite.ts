/** A ledger on SQLite as it is in use, its database thread included, that tells what it has done. */
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import type { Ledger } from "../../src/ledger/ledger.js";
import { openSqliteLedger } from "../../src/ledger/sqlite/sqlite-ledger.js";
import { SQL } from "../../src/ledger/sqlite/statements.js";
import { silentLogger } from "../../src/runtime/logger.js";
import { FAST_FOLDER } from "../ledger/sqlite-factory.js";
import { VirtualClock } from "../virtual-clock.js";

/** Statements by their names; commits that wait for the disk and those that don't; visited rows of async_jobs. */
const NAMES = [...Object.keys(SQL), "FULL", "NORMAL", "rows"];
/** How often it is asked follows the file system's hints. What an idle second has of it: foreign-changes.test.ts. */
const OF_TIME: readonly string[] = ["dataVersion"];

export interface CountedSqlite {
  readonly ledger: Ledger;
  readonly clock: VirtualClock;
  /** What was done since the last question, without what was not; `messages`: to the thread and back. */
  readonly spent: () => Record<string, number>;
}

/** Closes and removes it afterwards, whatever happens. */
export async function withCountedSqlite(
  use: (counted: CountedSqlite) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(join(FAST_FOLDER, "jobtable-costs-"));
  const counters = new Int32Array(new SharedArrayBuffer(4 * NAMES.length));
  const clock = new VirtualClock();
  let messages = 0;
  const ledger = await openSqliteLedger({
    path: join(folder, "jobs.db"),
    clock,
    logger: silentLogger,
    startThread: (data) => {
      const thread = new Worker(new URL("./counting-thread.mjs", import.meta.url), {
        workerData: { ...data, counters, names: NAMES },
      });
      const post = thread.postMessage.bind(thread);
      thread.postMessage = (message: unknown): void => {
        messages += 1;
        post(message);
      };
      thread.on("message", ({ kind }: { readonly kind: string }) => {
        if (kind === "outcomes") messages += 1;
      });
      return thread;
    },
  });
  const spent = (): Record<string, number> => {
    const counts = NAMES.map(
      (name, place) => [name, Atomics.exchange(counters, place, 0)] as const,
    );
    const done = counts.filter(([name, count]) => count > 0 && !OF_TIME.includes(name));
    const told = messages;
    messages = 0;
    return Object.fromEntries([...done, ["messages", told]]);
  };
  spent();
  try {
    await use({ ledger, clock, spent });
  } finally {
    await ledger.close();
    await rm(folder, { recursive: true });
  }
}
