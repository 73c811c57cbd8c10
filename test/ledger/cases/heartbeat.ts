/** What a beat records, and what its answer says. */
import { expect } from "vitest";
import {
  accept,
  acceptOne,
  beat,
  beatOf,
  claim,
  claimOf,
  claimOne,
  jobIn,
  MINUTE_MS,
  newJobs,
  nextJobId,
  OTHER_WORKER,
  PATIENT,
  present,
  retryIn,
  see,
  settleOne,
  SUCCEED,
  WORKER,
} from "../acts.js";
import type { Cases } from "../harness.js";

const NOTHING = { cancelRequested: [], lost: [] };

export function heartbeatCases(cases: Cases): void {
  jobCases(cases);
  workerCases(cases);
}

function jobCases({ check, checkShared }: Cases): void {
  check("a beat renews its own jobs and no others", async (h) => {
    await accept(h.ledger, newJobs(2));
    const [mine, other] = (await claim(h.ledger, 2)).map(({ job }) => present(job));
    await h.age(10 * MINUTE_MS);
    expect(await h.ledger.heartbeat(beat(), [beatOf(present(mine))])).toEqual(NOTHING);
    const nowMs = await h.nowMs();
    const seen = await see(h.ledger, present(mine).jobId);
    expect(nowMs - present(seen.lastHeartbeatMs)).toBeLessThan(5 * MINUTE_MS);
    expect(seen).toMatchObject({ status: "running", attempt: 1, progressJson: null });
    const old = await see(h.ledger, present(other).jobId);
    expect(nowMs - present(old.lastHeartbeatMs)).toBeGreaterThan(5 * MINUTE_MS);
  });

  check("a beat without jobs is fine", async (h) => {
    expect(await h.ledger.heartbeat(beat(), [])).toEqual(NOTHING);
  });

  check("the answer names those of the jobs named that were asked to cancel", async (h) => {
    await accept(h.ledger, newJobs(3));
    const jobs = (await claim(h.ledger, 3)).map(({ job }) => job);
    const [a, b, c] = jobs.map((job) => job.jobId);
    await h.ledger.cancel([present(b), present(c)]);
    const answer = await h.ledger.heartbeat(
      beat(),
      jobs.slice(0, 2).map((job) => beatOf(job)),
    );
    expect(answer).toEqual({ cancelRequested: [b], lost: [] });
    expect((await see(h.ledger, present(a))).cancelRequestedAtMs).toBeNull();
  });

  check("the answer names those that are no longer this worker's", async (h) => {
    const ended = (await jobIn(h.ledger, "succeeded")).job;
    const retried = (await jobIn(h.ledger, "running", { maxAttempts: 3 })).job;
    await settleOne(h.ledger, claimOf(retried), retryIn(0));
    const again = (await claimOne(h.ledger)).job;
    const mine = (await jobIn(h.ledger, "running")).job;
    await acceptOne(h.ledger);
    const theirs = (await claimOne(h.ledger, OTHER_WORKER)).job;
    const waiting = (await jobIn(h.ledger, "queued")).job;
    const unknown = { jobId: nextJobId(), attempt: 1 };
    const answer = await h.ledger.heartbeat(beat(), [
      beatOf(ended),
      { jobId: retried.jobId, attempt: 1 },
      beatOf(mine),
      beatOf(theirs),
      { jobId: waiting.jobId, attempt: 0 },
      unknown,
    ]);
    expect(answer.cancelRequested).toEqual([]);
    expect([...answer.lost].sort()).toEqual(
      [ended, retried, theirs, waiting, unknown].map((job) => job.jobId).sort(),
    );
    expect(await see(h.ledger, again.jobId)).toEqual(again);
  });

  check("a beat for a lost job changes nothing of it, its progress neither", async (h) => {
    await acceptOne(h.ledger, { maxAttempts: 3 });
    const stale = (await claimOne(h.ledger)).job;
    await h.ledger.rescue({ ...PATIENT, goneWorkerIds: [WORKER] });
    const waiting = await see(h.ledger, stale.jobId);
    expect(await h.ledger.heartbeat(beat(), [beatOf(stale, '"stale"')])).toEqual({
      cancelRequested: [],
      lost: [stale.jobId],
    });
    expect(await see(h.ledger, stale.jobId)).toEqual(waiting);
    const fresh = (await claimOne(h.ledger, OTHER_WORKER)).job;
    await h.ledger.cancel([stale.jobId]);
    expect(await h.ledger.heartbeat(beat(), [beatOf(stale, '"stale"')])).toEqual({
      cancelRequested: [],
      lost: [stale.jobId],
    });
    expect((await see(h.ledger, fresh.jobId)).progressJson).toBeNull();
  });

  check("progress: the newest report stands, a beat without one changes none", async (h) => {
    const { job } = await jobIn(h.ledger, "running");
    await h.ledger.heartbeat(beat(), [beatOf(job, '{"done":1}')]);
    expect((await see(h.ledger, job.jobId)).progressJson).toBe('{"done":1}');
    await h.ledger.heartbeat(beat(), [beatOf(job)]);
    expect((await see(h.ledger, job.jobId)).progressJson).toBe('{"done":1}');
    await h.ledger.heartbeat(beat(), [beatOf(job, "2")]);
    await settleOne(h.ledger, claimOf(job), SUCCEED);
    expect((await see(h.ledger, job.jobId)).progressJson).toBe("2");
  });

  checkShared("a job taken over elsewhere is named lost in the next beat", async (h) => {
    const theirs = await h.second();
    await acceptOne(h.ledger, { maxAttempts: 2 });
    const { job } = await claimOne(h.ledger);
    await h.ledger.heartbeat(beat(), [beatOf(job)]);
    await theirs.rescue({ ...PATIENT, goneWorkerIds: [WORKER] });
    await claimOne(theirs, OTHER_WORKER);
    expect(await h.ledger.heartbeat(beat(), [beatOf(job)])).toEqual({
      cancelRequested: [],
      lost: [job.jobId],
    });
  });
}

function workerCases({ check, checkShared }: Cases): void {
  check("a worker's row is what its last beat said, its start that of the first", async (h) => {
    expect(await h.ledger.workers()).toEqual([]);
    await h.ledger.heartbeat(beat(), []);
    const [first] = await h.ledger.workers();
    expect(first).toEqual({
      ...beat(),
      startedAtMs: first?.startedAtMs,
      lastHeartbeatMs: first?.startedAtMs,
    });
    expect(Math.abs(present(first).startedAtMs - (await h.nowMs()))).toBeLessThan(30_000);
    await h.age(3 * MINUTE_MS);
    const later = beat(WORKER, {
      state: "draining",
      tasks: ["echo", "ocr"],
      processed: 7,
      failed: 2,
      cancelled: 1,
    });
    await h.ledger.heartbeat(later, []);
    const [row, ...others] = await h.ledger.workers();
    expect(others).toEqual([]);
    expect(row).toMatchObject(later);
    const { startedAtMs, lastHeartbeatMs } = present(row);
    const nowMs = await h.nowMs();
    expect(nowMs - lastHeartbeatMs).toBeLessThan(MINUTE_MS);
    expect(nowMs - startedAtMs).toBeGreaterThan(2 * MINUTE_MS);
    expect(nowMs - startedAtMs).toBeLessThan(4 * MINUTE_MS);
  });

  check("a worker that leaves is no longer listed; the others stay; twice is fine", async (h) => {
    await h.ledger.heartbeat(beat(), []);
    await h.ledger.heartbeat(beat(OTHER_WORKER), []);
    await h.ledger.leave(WORKER);
    await h.ledger.leave(WORKER);
    await h.ledger.leave("worker-ffffffff");
    expect((await h.ledger.workers()).map((row) => row.workerId)).toEqual([OTHER_WORKER]);
  });

  checkShared("workers of both are listed by both", async (h) => {
    const theirs = await h.second();
    await h.ledger.heartbeat(beat(), []);
    await theirs.heartbeat(beat(OTHER_WORKER, { pid: 77 }), []);
    for (const ledger of [h.ledger, theirs]) {
      const rows = await ledger.workers();
      expect(rows.map((row) => row.workerId).sort()).toEqual([WORKER, OTHER_WORKER]);
    }
  });
}
