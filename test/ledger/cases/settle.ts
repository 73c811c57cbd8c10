/** Promises 2 and 3: a job ends exactly once, by its owner, with all that belongs to the end. */
import { expect } from "vitest";
import type { Job } from "../../../src/job/job.js";
import { ALL_STATUSES, TRANSITIONS, allows, type JobEvent } from "../../../src/job/state.js";
import type { End, Ledger } from "../../../src/ledger/ledger.js";
import {
  accept,
  acceptOne,
  claim,
  claimOf,
  claimOne,
  FAIL,
  jobIn,
  look,
  MINUTE_MS,
  newJob,
  newJobs,
  nextJobId,
  numbers,
  OTHER_WORKER,
  PATIENT,
  present,
  releaseOf,
  retryIn,
  see,
  settledAs,
  settleOne,
  SUCCEED,
  WORKER,
  type Unstarted,
} from "../acts.js";
import type { Cases } from "../harness.js";

type OwnerEvent = {
  [E in JobEvent]: (typeof TRANSITIONS)[E]["by"] extends "owner" ? E : never;
}[JobEvent];

/** One end for each event that the table gives to the owner; the compiler misses none. */
const ENDS: Record<OwnerEvent, (claimed: Unstarted) => End> = {
  succeed: () => ({ event: "succeed", resultJson: '{"text":"hello"}' }),
  fail: () => ({ event: "fail", errorMessage: "Error: it broke" }),
  time_out: () => ({ event: "time_out", errorMessage: "TimeLimit: too long" }),
  stop: () => ({ event: "stop" }),
  retry: () => retryIn(0),
  release: releaseOf,
};
const OWNER_EVENTS = Object.keys(ENDS) as OwnerEvent[];

export function settleCases(cases: Cases): void {
  matrixCases(cases);
  endCases(cases);
  requeueCases(cases);
  racingCases(cases);
  lostClaimCases(cases);
}

function matrixCases({ check }: Cases): void {
  for (const event of OWNER_EVENTS)
    for (const status of ALL_STATUSES)
      check(
        `${event} on a ${status} job ${allows(status, event) ? "happens" : "is refused"}`,
        async (h) => {
          const claimed = await jobIn(h.ledger, status, { maxAttempts: 2 });
          const { job } = claimed;
          const held = { jobId: job.jobId, workerId: WORKER, attempt: 1 };
          const result = await h.ledger.result(job.jobId);
          const answer = await settledAs(h.ledger, held, ENDS[event](claimed));
          expect(answer).toBe(allows(status, event) ? TRANSITIONS[event].to : null);
          const after = await see(h.ledger, job.jobId);
          if (answer !== null) expect(after.status).toBe(answer);
          else {
            expect(after).toEqual(job);
            expect(await h.ledger.result(job.jobId)).toEqual(result);
          }
        },
      );
}

function endCases({ check }: Cases): void {
  check("an end publishes status, result, error and time together", async (h) => {
    for (const status of ["succeeded", "failed", "timed_out", "cancelled"] as const) {
      const { job } = await jobIn(h.ledger, status);
      const found = present(await h.ledger.result(job.jobId));
      expect(found.job).toEqual(job);
      expect(found.resultJson).toBe(status === "succeeded" ? "1" : null);
      expect(job.errorMessage !== null).toBe(status === "failed" || status === "timed_out");
      expect(Math.abs(present(job.finishedAtMs) - (await h.nowMs()))).toBeLessThan(30_000);
      expect(job).toMatchObject({ workerId: WORKER, attempt: 1 });
    }
  });

  check("a job that has not ended has neither end nor result nor error", async (h) => {
    for (const status of ["running", "queued"] as const) {
      const { job } = await jobIn(h.ledger, status);
      expect(job).toMatchObject({ finishedAtMs: null, errorMessage: null });
      expect(present(await h.ledger.result(job.jobId)).resultJson).toBeNull();
    }
  });

  check("the messages are kept as given", async (h) => {
    const failed = await jobIn(h.ledger, "failed");
    expect(failed.job.errorMessage).toBe("Error: it broke");
    const timedOut = await jobIn(h.ledger, "timed_out");
    expect(timedOut.job.errorMessage).toBe("TimeLimit: too long");
  });

  check("one call settles many, each answered in its place", async (h) => {
    await accept(h.ledger, newJobs(4, { maxAttempts: 2 }));
    const [a, b, c, d] = (await claim(h.ledger, 4)).map(({ job }) => job);
    const wrong = { jobId: nextJobId(), workerId: WORKER, attempt: 1 };
    const answers = await h.ledger.settle([
      { ...claimOf(present(a)), end: SUCCEED },
      { ...wrong, end: SUCCEED },
      { ...claimOf(present(b)), end: FAIL },
      { ...claimOf(present(c)), workerId: OTHER_WORKER, end: SUCCEED },
      { ...claimOf(present(d)), end: retryIn(MINUTE_MS) },
      { ...claimOf(present(a)), end: FAIL },
    ]);
    expect(answers).toEqual(["succeeded", null, "failed", null, "queued", null]);
    const found = await h.ledger.get([a, b, c, d].map((job) => present(job).jobId));
    expect(found.map((job) => job?.status)).toEqual(["succeeded", "failed", "running", "queued"]);
    expect(await numbers(h.ledger)).toEqual([1, 1, 4]);
    expect(await h.ledger.settle([])).toEqual([]);
  });

  check("an end lowers the depth exactly once", async (h) => {
    await accept(h.ledger, newJobs(3));
    const { job } = await claimOne(h.ledger);
    for (const end of [SUCCEED, SUCCEED, FAIL]) await settleOne(h.ledger, claimOf(job), end);
    expect(await numbers(h.ledger)).toEqual([2, 0, 3]);
  });
}

function requeueCases({ check }: Cases): void {
  check(
    "retry: due again after the pause, with its payload, its message and a further attempt",
    async (h) => {
      const given = newJob({ maxAttempts: 2 });
      await accept(h.ledger, [given]);
      const first = await claimOne(h.ledger);
      expect(await settleOne(h.ledger, claimOf(first.job), retryIn(10 * MINUTE_MS))).toBe(true);
      const waiting = await see(h.ledger, given.jobId);
      expect(waiting).toMatchObject({
        status: "queued",
        attempt: 1,
        finishedAtMs: null,
        workerId: WORKER,
        errorMessage: "Error: not yet",
      });
      expect(waiting.runAtMs - (await h.nowMs())).toBeGreaterThan(9 * MINUTE_MS);
      expect(await claim(h.ledger, 1)).toEqual([]);
      await h.age(11 * MINUTE_MS);
      const second = await claimOne(h.ledger, OTHER_WORKER);
      expect(second.payloadJson).toBe(given.payloadJson);
      expect(second.job).toMatchObject({ attempt: 2, workerId: OTHER_WORKER, errorMessage: null });
      expect(await settleOne(h.ledger, claimOf(second.job), SUCCEED)).toBe(true);
      expect(await see(h.ledger, given.jobId)).toMatchObject({
        status: "succeeded",
        errorMessage: null,
      });
    },
  );

  check("retry without an attempt left changes nothing", async (h) => {
    const { job } = await jobIn(h.ledger, "running", { maxAttempts: 1 });
    expect(await settleOne(h.ledger, claimOf(job), retryIn(0))).toBe(false);
    expect(await see(h.ledger, job.jobId)).toEqual(job);
    expect(await settleOne(h.ledger, claimOf(job), FAIL)).toBe(true);
  });

  check("attempts never exceed their maximum", async (h) => {
    const { jobId } = await acceptOne(h.ledger, { maxAttempts: 3 });
    const attempts: number[] = [];
    for (;;) {
      const [claimed] = await claim(h.ledger, 1);
      if (claimed === undefined) break;
      attempts.push(claimed.job.attempt);
      if (!(await settleOne(h.ledger, claimOf(claimed.job), retryIn(0)))) break;
    }
    expect(attempts).toEqual([1, 2, 3]);
    expect(await see(h.ledger, jobId)).toMatchObject({ status: "running", attempt: 3 });
  });

  check(
    "release: the attempt is given back and the payload is there again, however often",
    async (h) => {
      const given = newJob({ maxAttempts: 1 });
      await accept(h.ledger, [given]);
      for (let round = 0; round < 5; round += 1) {
        const claimed = await claimOne(h.ledger);
        expect(claimed.payloadJson).toBe(given.payloadJson);
        expect(claimed.job.attempt).toBe(1);
        expect(await settleOne(h.ledger, claimOf(claimed.job), releaseOf(claimed))).toBe(true);
        const waiting = await see(h.ledger, given.jobId);
        expect(waiting).toMatchObject({ status: "queued", attempt: 0, errorMessage: null });
        expect(await h.ledger.payload(given.jobId)).toBe(given.payloadJson);
      }
      const last = await claimOne(h.ledger, OTHER_WORKER);
      expect(await settleOne(h.ledger, claimOf(last.job), SUCCEED)).toBe(true);
    },
  );
}

function racingCases({ check, checkShared }: Cases): void {
  const endOnce = async (ledgers: readonly Ledger[]): Promise<void> => {
    const ledger = present(ledgers[0]);
    await accept(ledger, newJobs(20));
    const jobs = (await claim(ledger, 20)).map(({ job }) => job);
    const ends: End[] = Array.from({ length: 12 }, (_, at) => [
      { event: "succeed", resultJson: String(at) } as const,
      { event: "fail", errorMessage: `Error: ${String(at)}` } as const,
      { event: "stop" } as const,
    ]).flatMap((three, at) => present(three[at % 3]));
    const answers = await Promise.all(
      ends.map((end, at) =>
        present(ledgers[at % ledgers.length]).settle(jobs.map((job) => ({ ...claimOf(job), end }))),
      ),
    );
    for (const [at, job] of jobs.entries()) {
      const winners = ends.filter((_, by) => answers[by]?.[at] !== null);
      expect(winners).toHaveLength(1);
      await expectEnd(ledger, job, present(winners[0]));
    }
    expect(await numbers(ledger)).toEqual([0, 0, 20]);
  };
  check("racing finishers: one of them ends the job, and it is its end that stands", (h) =>
    endOnce([h.ledger, h.ledger]),
  );
  checkShared(
    "racing finishers: one of them ends the job, and it is its end that stands",
    async (h) => endOnce([h.ledger, await h.second()]),
  );

  check("one call in which some retry and some were cancelled answers each alike", async (h) => {
    await accept(h.ledger, newJobs(4, { maxAttempts: 2 }));
    const claimed = await claim(h.ledger, 4);
    const asked = claimed.slice(0, 2).map(({ job }) => job.jobId);
    await h.ledger.cancel(asked);
    const answers = await h.ledger.settle(
      claimed.map((one, at) => ({
        ...claimOf(one.job),
        end: at % 2 === 0 ? retryIn(0) : releaseOf(one),
      })),
    );
    expect(answers).toEqual(["cancelled", "cancelled", "queued", "queued"]);
    expect(await numbers(h.ledger)).toEqual([2, 0, 4]);
  });

  check("the same claim several times in one call: the first wins", async (h) => {
    const { job } = await jobIn(h.ledger, "running");
    const held = claimOf(job);
    expect(
      await h.ledger.settle([
        { ...held, end: { event: "succeed", resultJson: '"first"' } },
        { ...held, end: { event: "succeed", resultJson: '"second"' } },
        { ...held, end: FAIL },
      ]),
    ).toEqual(["succeeded", null, null]);
    await expectEnd(h.ledger, job, { event: "succeed", resultJson: '"first"' });
  });
}

async function expectEnd(ledger: Ledger, job: Job, end: End): Promise<void> {
  const found = present(await ledger.result(job.jobId));
  expect(found.job.status).toBe(TRANSITIONS[end.event].to);
  expect(found.resultJson).toBe(end.event === "succeed" ? end.resultJson : null);
  expect(found.job.errorMessage).toBe(end.event === "fail" ? end.errorMessage : null);
}

function lostClaimCases({ check, checkShared }: Cases): void {
  /** Every end that `held` could try is refused, and leaves the job as it is. */
  const settlesNothing = async (
    ledger: Ledger,
    held: ReturnType<typeof claimOf>,
  ): Promise<void> => {
    const before = await look(ledger, held.jobId);
    // Whatever the record says, so that nothing but the claim can be what refuses them.
    const startedAtMs = before?.startedAtMs ?? null;
    for (const event of OWNER_EVENTS) {
      const end = ENDS[event]({ job: { startedAtMs }, payloadJson: "{}" });
      expect(await settleOne(ledger, held, end)).toBe(false);
    }
    expect(await look(ledger, held.jobId)).toEqual(before);
  };

  check("a wrong owner, a wrong attempt, an unknown job settle nothing", async (h) => {
    const { job } = await jobIn(h.ledger, "running", { maxAttempts: 3 });
    const held = claimOf(job);
    await settlesNothing(h.ledger, { ...held, workerId: OTHER_WORKER });
    await settlesNothing(h.ledger, { ...held, attempt: 0 });
    await settlesNothing(h.ledger, { ...held, attempt: 2 });
    await settlesNothing(h.ledger, { ...held, jobId: nextJobId() });
    expect(await settleOne(h.ledger, held, SUCCEED)).toBe(true);
  });

  const pausedWorker = async (ours: Ledger, theirs: Ledger): Promise<void> => {
    const { jobId } = await acceptOne(ours, { maxAttempts: 3 });
    const stale = claimOf((await claimOne(ours)).job);
    const rescued = await theirs.rescue({ ...PATIENT, goneWorkerIds: [WORKER] });
    expect(rescued.map((one) => one.jobId)).toEqual([jobId]);
    await settlesNothing(ours, stale);
    const fresh = await claimOne(theirs, OTHER_WORKER);
    await settlesNothing(ours, stale);
    expect(await settleOne(theirs, claimOf(fresh.job), SUCCEED)).toBe(true);
    await settlesNothing(ours, stale);
    expect(await see(ours, jobId)).toMatchObject({ status: "succeeded", workerId: OTHER_WORKER });
  };
  check("a claim that was rescued settles nothing, then or after the next run", (h) =>
    pausedWorker(h.ledger, h.ledger),
  );
  checkShared("a claim that was rescued settles nothing, then or after the next run", async (h) =>
    pausedWorker(h.ledger, await h.second()),
  );

  check("a release that comes once more leaves the same worker's next claim alone", async (h) => {
    const { jobId } = await acceptOne(h.ledger);
    const { payloadJson } = await claimOne(h.ledger);
    // Of two claims within one ms nobody could tell which is meant.
    await h.age(MINUTE_MS);
    const old = { job: await see(h.ledger, jobId), payloadJson };
    const release = { ...claimOf(old.job), end: releaseOf(old) };
    expect(await h.ledger.settle([release, release])).toEqual(["queued", null]);
    const next = await claimOne(h.ledger);
    expect(claimOf(next.job)).toEqual(claimOf(old.job));
    expect(await h.ledger.settle([release])).toEqual([null]);
    await h.ledger.cancel([jobId]);
    expect(await h.ledger.settle([release])).toEqual([null]);
    expect(await see(h.ledger, jobId)).toMatchObject({ status: "running", attempt: 1 });
    expect(await settleOne(h.ledger, claimOf(next.job), releaseOf(next))).toBe(true);
    expect(await see(h.ledger, jobId)).toMatchObject({ status: "cancelled", attempt: 1 });
  });

  check("after a retry the same worker's old claim settles nothing", async (h) => {
    await acceptOne(h.ledger, { maxAttempts: 3 });
    const old = claimOf((await claimOne(h.ledger)).job);
    expect(await settleOne(h.ledger, old, retryIn(0))).toBe(true);
    await settlesNothing(h.ledger, old);
    const next = claimOf((await claimOne(h.ledger)).job);
    expect(next.attempt).toBe(2);
    await settlesNothing(h.ledger, old);
    expect(await settleOne(h.ledger, next, SUCCEED)).toBe(true);
  });
}
