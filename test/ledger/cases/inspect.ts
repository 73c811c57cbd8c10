/** What a ledger tells of itself. */
import { expect } from "vitest";
import type { InspectLimit } from "../../../src/ledger/ledger.js";
import {
  accept,
  acceptOne,
  beat,
  beatOf,
  claim,
  claimOne,
  HOUR_MS,
  MINUTE_MS,
  newJobs,
  OTHER_WORKER,
  see,
  WORKER,
} from "../acts.js";
import type { Cases } from "../harness.js";

const LIMIT: InspectLimit = { jobTimeoutMs: HOUR_MS, workerTimeoutMs: MINUTE_MS, chunk: 10 };

export function inspectCases({ check }: Cases): void {
  check("an empty ledger has nothing to tell but its version and time", async (h) => {
    const before = await h.nowMs();
    const report = await h.ledger.inspect(LIMIT);
    expect(report).toMatchObject({
      counts: { queued: 0, running: 0, total: 0, oldestQueuedMs: null },
      workers: [],
      oldestQueued: null,
      stuck: [],
      waiting: [],
    });
    expect(report.software).toMatch(/^(memory|SQLite 3\.\d+\.\d+|PostgreSQL \d+.*)$/);
    if (report.software === "memory") expect(report.schemaVersion).toBeNull();
    else expect(report.schemaVersion).toBeGreaterThan(0);
    expect(report.nowMs).toBeGreaterThanOrEqual(before);
  });

  check(
    "it tells what waits, by task, and which job of those due has waited longest",
    async (h) => {
      await acceptOne(h.ledger, { task: "later", delayMs: HOUR_MS });
      const oldest = await acceptOne(h.ledger, { priority: -5 });
      await h.age(1);
      await accept(h.ledger, newJobs(2));
      await accept(h.ledger, newJobs(2, { priority: 5 }));
      const report = await h.ledger.inspect(LIMIT);
      expect(report.oldestQueued).toEqual(await see(h.ledger, oldest.jobId));
      expect(report.waiting).toEqual([
        { task: "echo", queued: 5 },
        { task: "later", queued: 1 },
      ]);
      expect(report.counts).toMatchObject({ queued: 6, running: 0, total: 6 });
      expect((await h.ledger.inspect({ ...LIMIT, chunk: 1 })).waiting).toHaveLength(1);
    },
  );

  check("it names the running jobs that a rescue would find, and changes nothing", async (h) => {
    await accept(h.ledger, newJobs(3));
    await h.ledger.heartbeat(beat(WORKER), []);
    const [lost] = await claim(h.ledger, 1);
    await h.age(MINUTE_MS + 1);
    await h.ledger.heartbeat(beat(OTHER_WORKER), []);
    const kept = await claimOne(h.ledger, OTHER_WORKER);
    await h.ledger.heartbeat(beat(OTHER_WORKER), [beatOf(kept.job)]);
    const first = await h.ledger.inspect(LIMIT);
    expect(first.stuck.map(({ jobId }) => jobId)).toEqual([lost?.job.jobId]);
    expect(first.workers.map(({ workerId }) => workerId).sort()).toEqual([WORKER, OTHER_WORKER]);
    // The worker goes on, but says no more of its job.
    await h.age(HOUR_MS + 1);
    await h.ledger.heartbeat(beat(WORKER), []);
    await h.ledger.heartbeat(beat(OTHER_WORKER), [beatOf(kept.job)]);
    const second = await h.ledger.inspect(LIMIT);
    expect(second.stuck.map(({ jobId }) => jobId)).toEqual([lost?.job.jobId]);
    expect((await h.ledger.inspect({ ...LIMIT, chunk: 0 })).stuck).toEqual([]);
    expect(await h.ledger.counts()).toMatchObject({ queued: 1, running: 2 });
  });
}
