/** What someone who asks how things stand is told. */
import { expect } from "vitest";
import {
  accept,
  acceptOne,
  beat,
  beatOf,
  claim,
  claimOne,
  HOUR_MS,
  jobIn,
  MINUTE_MS,
  newJobs,
  OTHER_WORKER,
  present,
  see,
  WORKER,
} from "../acts.js";
import type { Cases } from "../harness.js";

const LIMIT = { jobTimeoutMs: HOUR_MS, workerTimeoutMs: MINUTE_MS, chunk: 10 };

export function inspectCases({ check, checkShared }: Cases): void {
  check("an empty ledger: its clock, its software, and nothing else", async (h) => {
    const report = await h.ledger.inspect(LIMIT);
    expect(Math.abs(report.nowMs - (await h.nowMs()))).toBeLessThan(30_000);
    expect(report.software).toMatch(
      { memory: /^memory$/, sqlite: /^SQLite 3\.\d+/, postgres: /^PostgreSQL \d+(\.\d+)?$/ }[
        h.ledger.kind
      ] ?? /never/,
    );
    expect(report.schemaVersion === null).toBe(h.ledger.kind === "memory");
    if (report.schemaVersion !== null) expect(report.schemaVersion).toBeGreaterThanOrEqual(4);
    expect(report).toMatchObject({
      counts: { queued: 0, running: 0, total: 0, oldestQueuedMs: null },
      workers: [],
      oldestQueued: null,
      stuck: [],
      waiting: [],
    });
  });

  check(
    "the counts, the workers and the records are those that the other verbs give",
    async (h) => {
      await jobIn(h.ledger, "failed");
      await accept(h.ledger, newJobs(3, { maxAttempts: 2, requestId: 'é"漢' }));
      await accept(h.ledger, newJobs(2, { task: "ocr" }));
      const { job } = await claimOne(h.ledger);
      await h.ledger.heartbeat(beat(WORKER, { tasks: ["a b", "é"] }), [beatOf(job, '{"p":1}')]);
      await h.ledger.heartbeat(beat(OTHER_WORKER), []);
      await h.age(2 * HOUR_MS);
      const report = await h.ledger.inspect(LIMIT);
      const { queued, running, total, oldestQueuedMs } = await h.ledger.counts();
      expect(report.counts).toMatchObject({ queued, running, total });
      const waitedMs = present(report.counts.oldestQueuedMs);
      expect(Math.abs(waitedMs - present(oldestQueuedMs))).toBeLessThan(30_000);
      expect(report.workers).toEqual(await h.ledger.workers());
      expect(report.stuck).toEqual([await see(h.ledger, job.jobId)]);
      const oldest = present(report.oldestQueued);
      expect(oldest).toEqual(await see(h.ledger, oldest.jobId));
      expect(report.waiting).toEqual([
        { task: "echo", queued: 2 },
        { task: "ocr", queued: 2 },
      ]);
    },
  );

  check(
    "the oldest is the one that has been due for longest, over tasks and priorities",
    async (h) => {
      const nowMs = await h.nowMs();
      await acceptOne(h.ledger, { runAtMs: nowMs + 30 * MINUTE_MS });
      expect((await h.ledger.inspect(LIMIT)).oldestQueued).toBeNull();
      await acceptOne(h.ledger, { runAtMs: nowMs - 2 * MINUTE_MS, priority: 5 });
      const oldest = await acceptOne(h.ledger, { runAtMs: nowMs - 3 * MINUTE_MS, task: "ocr" });
      await acceptOne(h.ledger, { runAtMs: nowMs - MINUTE_MS, priority: -5 });
      expect((await h.ledger.inspect(LIMIT)).oldestQueued).toEqual(oldest);
    },
  );

  check("stuck: its own beat is too old, or its worker is lost, or was never there", async (h) => {
    await accept(h.ledger, newJobs(3));
    const fresh = await claimOne(h.ledger);
    const old = await claimOne(h.ledger);
    const lost = await claimOne(h.ledger, OTHER_WORKER);
    await h.ledger.heartbeat(beat(OTHER_WORKER), [beatOf(lost.job)]);
    await h.age(30 * MINUTE_MS);
    await h.ledger.heartbeat(beat(WORKER), [beatOf(fresh.job)]);
    const stuckBy = async (limit: Partial<typeof LIMIT>): Promise<string[]> =>
      (await h.ledger.inspect({ ...LIMIT, ...limit })).stuck.map(({ jobId }) => jobId).sort();
    expect(await stuckBy({})).toEqual([lost.job.jobId]);
    const silent = [old.job.jobId, lost.job.jobId].sort();
    expect(await stuckBy({ jobTimeoutMs: 20 * MINUTE_MS })).toEqual(silent);
    expect(await stuckBy({ workerTimeoutMs: HOUR_MS })).toEqual([]);
    expect(await stuckBy({ jobTimeoutMs: 20 * MINUTE_MS, chunk: 1 })).toHaveLength(1);
    expect(await stuckBy({ jobTimeoutMs: 20 * MINUTE_MS, chunk: 0 })).toEqual([]);
    // It was a look: nothing has moved.
    expect((await see(h.ledger, lost.job.jobId)).status).toBe("running");
  });

  check("what waits is told by task, the most first, as many tasks as asked for", async (h) => {
    for (const [task, count] of [
      ["a", 1],
      ["b", 3],
      ["c", 2],
    ] as const)
      for (const priority of [0, 1]) await accept(h.ledger, newJobs(count, { task, priority }));
    await accept(h.ledger, newJobs(4, { task: "a", delayMs: HOUR_MS }));
    await claim(h.ledger, 1, WORKER, ["c"]);
    const all = [
      { task: "a", queued: 6 },
      { task: "b", queued: 6 },
      { task: "c", queued: 3 },
    ];
    expect((await h.ledger.inspect(LIMIT)).waiting).toEqual(all);
    expect((await h.ledger.inspect({ ...LIMIT, chunk: 2 })).waiting).toEqual(all.slice(0, 2));
  });

  checkShared("both see the same", async (h) => {
    await accept(h.ledger, newJobs(2));
    const theirs = await h.second();
    await theirs.heartbeat(beat(), []);
    const [ours, other] = [await h.ledger.inspect(LIMIT), await theirs.inspect(LIMIT)];
    const timeless = { nowMs: 0, counts: 0 };
    expect({ ...other, ...timeless }).toEqual({ ...ours, ...timeless });
  });
}
