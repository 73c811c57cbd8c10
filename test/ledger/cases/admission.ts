/** Promise 1: the check against the bound and the record are one step. */
import { expect } from "vitest";
import type { NewJob } from "../../../src/job/job.js";
import type { Ledger, SubmitOutcome } from "../../../src/ledger/ledger.js";
import {
  accept,
  acceptOne,
  claim,
  claimOf,
  claimOne,
  HOUR_MS,
  look,
  newJob,
  newJobs,
  nextJobId,
  numbers,
  present,
  releaseOf,
  retryIn,
  ROOMY,
  see,
  settleOne,
  SUCCEED,
} from "../acts.js";
import type { Cases } from "../harness.js";

export function admissionCases(cases: Cases): void {
  recordCases(cases);
  boundCases(cases);
  racingCases(cases);
  duplicateCases(cases);
}

function recordCases({ check }: Cases): void {
  check("an accepted job is recorded as it was given, with defaults for the rest", async (h) => {
    const given = newJob();
    const job = await acceptOne(h.ledger, given);
    expect(job).toMatchObject({
      jobId: given.jobId,
      planId: null,
      phase: null,
      task: "echo",
      queue: "default",
      status: "queued",
      priority: 0,
      attempt: 0,
      maxAttempts: 1,
      timeoutMs: null,
      startedAtMs: null,
      finishedAtMs: null,
      lastHeartbeatMs: null,
      cancelRequestedAtMs: null,
      workerId: null,
      schemaVersion: 1,
      errorMessage: null,
      requestId: null,
      idempotencyKey: null,
      progressJson: null,
    });
    expect(job.runAtMs).toBe(job.createdAtMs);
    expect(Math.abs(job.createdAtMs - (await h.nowMs()))).toBeLessThan(30_000);
    expect(await see(h.ledger, given.jobId)).toEqual(job);
    expect(await h.ledger.payload(given.jobId)).toBe(given.payloadJson);
  });

  check("every field that a caller may give is kept", async (h) => {
    const given = {
      planId: nextJobId(),
      phase: "apply",
      task: "ocr.v2",
      queue: "slow",
      priority: -3,
      runAtMs: (await h.nowMs()) + 90_000,
      maxAttempts: 7,
      timeoutMs: 1_234,
      schemaVersion: 2,
      requestId: "r-1",
    } as const satisfies Partial<NewJob>;
    const idempotency = { key: "k-1", fingerprint: "f-1" };
    const job = await acceptOne(h.ledger, { ...given, idempotency });
    expect(job).toMatchObject({ ...given, idempotencyKey: "k-1" });
    expect(await see(h.ledger, job.jobId)).toEqual(job);
  });

  check("a delay counts from the ledger's own now, to the millisecond", async (h) => {
    const year = 365 * 24 * HOUR_MS;
    const given = newJobs(4).map((job, at) => ({
      ...job,
      delayMs: present([0, 1_234, year, -5_000][at]),
    }));
    const jobs = await accept(h.ledger, given);
    expect(jobs.map((job) => job.runAtMs - job.createdAtMs)).toEqual([0, 1_234, year, 0]);
    expect(await h.ledger.get(jobs.map((job) => job.jobId))).toEqual(jobs);
  });

  check("of a delay and a time the later one holds; a time may have passed", async (h) => {
    const nowMs = await h.nowMs();
    const [later, sooner, past] = await accept(h.ledger, [
      newJob({ runAtMs: nowMs + 2 * HOUR_MS, delayMs: HOUR_MS }),
      newJob({ runAtMs: nowMs + HOUR_MS, delayMs: 2 * HOUR_MS }),
      newJob({ runAtMs: nowMs - HOUR_MS }),
    ]);
    expect(present(later).runAtMs).toBe(nowMs + 2 * HOUR_MS);
    expect(present(sooner).runAtMs - present(sooner).createdAtMs).toBe(2 * HOUR_MS);
    expect(present(past).runAtMs).toBe(nowMs - HOUR_MS);
    for (const job of [later, sooner, past])
      expect(await see(h.ledger, present(job).jobId)).toEqual(job);
  });

  check("null stands for left out", async (h) => {
    const job = await acceptOne(h.ledger, {
      planId: null,
      phase: null,
      runAtMs: null,
      delayMs: null,
      timeoutMs: null,
      requestId: null,
      idempotency: null,
    });
    expect(job).toMatchObject({ planId: null, phase: null, timeoutMs: null, requestId: null });
    expect(job.runAtMs).toBe(job.createdAtMs);
  });

  check("an empty list is answered with an empty list", async (h) => {
    expect(await h.ledger.submit([], ROOMY)).toEqual([]);
    expect(await numbers(h.ledger)).toEqual([0, 0, 0]);
  });

  check("a thousand jobs in one call are answered in order", async (h) => {
    const jobs = newJobs(1_000);
    const accepted = await accept(h.ledger, jobs);
    expect(accepted.map((job) => job.jobId)).toEqual(jobs.map((job) => job.jobId));
    expect(await numbers(h.ledger)).toEqual([1_000, 0, 1_000]);
  });
}

function boundCases({ check }: Cases): void {
  for (const maxDepth of [0, -1])
    check(`a bound of ${String(maxDepth)} admits nothing`, async (h) => {
      const [given, ...rest] = newJobs(3);
      expect(await h.ledger.submit([present(given), ...rest], { maxDepth })).toEqual([
        { kind: "full", depth: 0 },
        { kind: "full", depth: 0 },
        { kind: "full", depth: 0 },
      ]);
      expect(await numbers(h.ledger)).toEqual([0, 0, 0]);
      expect(await look(h.ledger, present(given).jobId)).toBeNull();
    });

  check("a batch is admitted from its front as far as the bound allows", async (h) => {
    await acceptOne(h.ledger);
    const jobs = newJobs(5);
    const outcomes = await h.ledger.submit(jobs, { maxDepth: 4 });
    expect(kinds(outcomes)).toEqual(["accepted", "accepted", "accepted", "full", "full"]);
    expect(outcomes.slice(3)).toEqual([
      { kind: "full", depth: 4 },
      { kind: "full", depth: 4 },
    ]);
    const found = await h.ledger.get(jobs.map((job) => job.jobId));
    expect(found.map((job) => job !== null)).toEqual([true, true, true, false, false]);
    expect(await numbers(h.ledger)).toEqual([4, 0, 4]);
  });

  check("depth is queued + running, and nothing but an end lowers it", async (h) => {
    const bound = { maxDepth: 2 };
    const isFull = async (): Promise<boolean> =>
      kinds(await h.ledger.submit([newJob()], bound))[0] === "full";
    await accept(h.ledger, newJobs(2, { maxAttempts: 5 }));
    expect(await isFull()).toBe(true);
    const claimed = await claim(h.ledger, 2);
    expect(await isFull()).toBe(true);
    const [first, second] = [present(claimed[0]), present(claimed[1])];
    expect(await settleOne(h.ledger, claimOf(first.job), releaseOf(first))).toBe(true);
    expect(await isFull()).toBe(true);
    expect(await settleOne(h.ledger, claimOf(second.job), retryIn(0))).toBe(true);
    expect(await isFull()).toBe(true);
    const again = await claimOne(h.ledger);
    expect(await settleOne(h.ledger, claimOf(again.job), SUCCEED)).toBe(true);
    expect(await isFull()).toBe(false);
    expect(await isFull()).toBe(true);
    expect(await numbers(h.ledger)).toEqual([2, 0, 3]);
  });

  check("ended jobs don't count, and the bound is each call's own", async (h) => {
    await accept(h.ledger, newJobs(5));
    for (const { job } of await claim(h.ledger, 5))
      expect(await settleOne(h.ledger, claimOf(job), SUCCEED)).toBe(true);
    expect(kinds(await h.ledger.submit([newJob()], { maxDepth: 1 }))).toEqual(["accepted"]);
    expect(await h.ledger.submit([newJob()], { maxDepth: 1 })).toEqual([
      { kind: "full", depth: 1 },
    ]);
    expect(kinds(await h.ledger.submit([newJob()], { maxDepth: 2 }))).toEqual(["accepted"]);
  });
}

function racingCases({ check, checkShared }: Cases): void {
  const admitExactly = async (ledgers: readonly Ledger[]): Promise<void> => {
    const batches = Array.from({ length: 60 }, (_, at) => newJobs((at % 4) + 1));
    const answers = await Promise.all(
      batches.map((jobs, at) =>
        present(ledgers[at % ledgers.length]).submit(jobs, { maxDepth: 17 }),
      ),
    );
    const outcomes = answers.flat();
    expect(kinds(outcomes).filter((kind) => kind === "accepted")).toHaveLength(17);
    for (const answer of answers) {
      const firstFull = kinds(answer).indexOf("full");
      if (firstFull >= 0) expect(kinds(answer).slice(firstFull)).not.toContain("accepted");
    }
    const ledger = present(ledgers[0]);
    expect(await numbers(ledger)).toEqual([17, 0, 17]);
    const found = await ledger.get(batches.flat().map((job) => job.jobId));
    expect(found.map((job) => job !== null)).toEqual(
      kinds(outcomes).map((kind) => kind === "accepted"),
    );
  };

  /** Submitters and finishers at once: no snapshot may show a depth beyond the bound. */
  const neverExceed = async (ledgers: readonly Ledger[]): Promise<void> => {
    const maxDepth = 5;
    let accepted = 0;
    let ended = 0;
    const depths: number[] = [];
    const submitter = async (ledger: Ledger): Promise<void> => {
      for (let round = 0; round < 25; round += 1) {
        const outcomes = await ledger.submit(newJobs(2), { maxDepth });
        accepted += kinds(outcomes).filter((kind) => kind === "accepted").length;
        const { queued, running } = await ledger.counts();
        depths.push(queued + running);
      }
    };
    const finisher = async (ledger: Ledger): Promise<void> => {
      for (let round = 0; round < 25; round += 1) {
        const claimed = await claim(ledger, 2);
        const done = await ledger.settle(
          claimed.map(({ job }) => ({ ...claimOf(job), end: SUCCEED })),
        );
        expect(done).toEqual(claimed.map(() => "succeeded"));
        ended += claimed.length;
      }
    };
    await Promise.all(ledgers.flatMap((ledger) => [submitter(ledger), finisher(ledger)]));
    expect(Math.max(...depths)).toBeLessThanOrEqual(maxDepth);
    const [queued, running, total] = await numbers(present(ledgers[0]));
    expect([queued + running, total]).toEqual([accepted - ended, accepted]);
    expect(ended).toBeGreaterThan(0);
  };

  check("many submitters at once get exactly the bound", (h) => admitExactly([h.ledger, h.ledger]));
  checkShared("many submitters at once get exactly the bound", async (h) =>
    admitExactly([h.ledger, await h.second()]),
  );
  check("submitters and finishers at once never exceed the bound", (h) =>
    neverExceed([h.ledger, h.ledger]),
  );
  checkShared("submitters and finishers at once never exceed the bound", async (h) =>
    neverExceed([h.ledger, await h.second()]),
  );
}

function duplicateCases({ check }: Cases): void {
  check("an id that is there already rejects the call, names it, records nothing", async (h) => {
    const old = await acceptOne(h.ledger, { requestId: "the first" });
    const fresh = newJob();
    await expect(
      h.ledger.submit([fresh, newJob({ jobId: old.jobId, requestId: "the second" })], ROOMY),
    ).rejects.toThrow(old.jobId);
    expect(await look(h.ledger, fresh.jobId)).toBeNull();
    expect(await see(h.ledger, old.jobId)).toEqual(old);
    expect(await numbers(h.ledger)).toEqual([1, 0, 1]);
  });

  check("an id twice in one call rejects it, names it, records nothing", async (h) => {
    const [one, two] = newJobs(2);
    const jobs = [present(one), present(two), newJob({ jobId: present(one).jobId })];
    await expect(h.ledger.submit(jobs, ROOMY)).rejects.toThrow(present(one).jobId);
    expect(await h.ledger.get(jobs.map((job) => job.jobId))).toEqual([null, null, null]);
    expect(await numbers(h.ledger)).toEqual([0, 0, 0]);
    await accept(h.ledger, jobs.slice(0, 2));
    expect(await numbers(h.ledger)).toEqual([2, 0, 2]);
  });

  check("a call with a duplicate takes no other call with it", async (h) => {
    const old = await acceptOne(h.ledger);
    const good = newJobs(20);
    const [bad, ...others] = await Promise.allSettled([
      h.ledger.submit([newJob({ jobId: old.jobId })], ROOMY),
      ...good.map((job) => h.ledger.submit([job], ROOMY)),
    ]);
    expect(bad.status).toBe("rejected");
    expect(others.map((other) => other.status)).toEqual(good.map(() => "fulfilled"));
    expect(await numbers(h.ledger)).toEqual([21, 0, 21]);
  });
}

function kinds(outcomes: readonly SubmitOutcome[]): string[] {
  return outcomes.map((outcome) => outcome.kind);
}
