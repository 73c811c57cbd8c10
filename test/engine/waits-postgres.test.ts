/** Jobs that end before anyone can have begun to wait for them. */
import { expect, test } from "vitest";
import type { Job } from "../../src/job/job.js";
import { submitted } from "../engine-rig.js";
import { STORES, withTwoEngines } from "./stores.js";

const MANY = 10_000;
/** So many at once, as clients would. */
const LANES = 250;

test.each(Object.entries(STORES))(
  "%s: 10,000 zero-length jobs run elsewhere, with a wait each: none reaches its timeout",
  { timeout: 240_000 },
  async (_, newStore) => {
    const zero = { name: "zero", run: () => null };
    await withTwoEngines(newStore, [zero], async (engine) => {
      const ends = new Map<string, number>();
      let left = MANY;
      const lane = async (): Promise<void> => {
        while (left > 0) {
          left -= 1;
          const jobId = await submitted({ engine }, "zero");
          // Longer than the test may take: one that is not told of its job's end fails it.
          const job = await engine.wait(jobId, { timeoutMs: 3_600_000, until: "end" });
          count(ends, job);
        }
      };
      await Promise.all(Array.from({ length: LANES }, lane));
      expect([...ends]).toEqual([["succeeded", MANY]]);
      expect(await engine.counts()).toMatchObject({ queued: 0, running: 0, total: MANY });
    });
  },
);

function count(ends: Map<string, number>, job: Job | null): void {
  const status = job?.status ?? "unknown";
  ends.set(status, (ends.get(status) ?? 0) + 1);
}
