/**
 * Whether memory stays flat: 200,000 jobs through one engine on SQLite, each waited for, with the heap
 * measured after a quarter of them and at the end. `npm run stress` plays it; it takes minutes, so that
 * the tests leave it out.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { createJobtable, task } from "../../src/index.js";

const JOBS = 200_000;
const MEASURED_AFTER = 50_000;
const WAITERS = 500;
/** For all jobs between the two looks: 21 bytes for each. A listener that stays takes several times that. */
const MOST_GROWTH_BYTES = 3 * 1024 * 1024;

const noop = task({ name: "noop", run: ({ n }: { n: number }) => n });

test(
  "F30: 200,000 jobs and waits through one engine: the heap stays flat",
  { timeout: 3_600_000 },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "jobtable-flat-"));
    const jobtable = createJobtable({
      store: `sqlite:${join(folder, "jobs.db")}`,
      tasks: [noop],
      asyncMaxQueue: 2 * WAITERS,
      // So that jobs are forgotten as well.
      asyncMaxCompleted: 20_000,
    });
    try {
      await jobtable.start();
      let next = 0;
      const liveUntil = async (count: number): Promise<void> => {
        const waiter = async (): Promise<void> => {
          while (next < count) {
            const job = await jobtable.submit("noop", { n: (next += 1) });
            const ended = await jobtable.wait(job, { timeoutMs: 600_000 });
            if (ended?.status !== "succeeded") throw new Error(`${job.jobId} did not succeed`);
          }
        };
        await Promise.all(Array.from({ length: WAITERS }, waiter));
      };
      await liveUntil(MEASURED_AFTER);
      const before = usedBytes();
      await liveUntil(JOBS);
      const after = usedBytes();
      const rssBytes = process.memoryUsage.rss();
      process.stdout.write(
        `memory after ${String(MEASURED_AFTER)} and ${String(JOBS)} jobs: ${mib(before)} and ${mib(after)} MiB; resident ${mib(rssBytes)} MiB\n`,
      );
      expect(after - before).toBeLessThan(MOST_GROWTH_BYTES);
    } finally {
      await jobtable.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
);

/** Heap, and buffers beside it, once everything that nobody holds is gone. */
function usedBytes(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function mib(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(1);
}
