/** Promise 4: anyone may ask, only the owner ends what runs. */
import { expect } from "vitest";
import { ALL_STATUSES, isTerminal, TERMINAL_STATUSES } from "../../../src/job/state.js";
import type { End, Ledger } from "../../../src/ledger/ledger.js";
import {
  accept,
  acceptOne,
  beat,
  beatOf,
  claim,
  claimOf,
  claimOne,
  FAIL,
  jobIn,
  MINUTE_MS,
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
  waitUntil,
  type Unstarted,
} from "../acts.js";
import type { Cases } from "../harness.js";

export function cancelCases(cases: Cases): void {
  stateCases(cases);
  noWayBackCases(cases);
  racingCases(cases);
}

function stateCases({ check }: Cases): void {
  check("a queued job ends there and is never claimed", async (h) => {
    const { job } = await jobIn(h.ledger, "queued");
    const outcome = present((await h.ledger.cancel([job.jobId]))[0]);
    const after = await see(h.ledger, job.jobId);
    expect(outcome).toEqual({ kind: "cancelled", job: after });
    expect(after).toMatchObject({ status: "cancelled", errorMessage: null, attempt: 0 });
    expect(after.finishedAtMs).not.toBeNull();
    expect(await claim(h.ledger, 10)).toEqual([]);
    expect(await numbers(h.ledger)).toEqual([0, 0, 1]);
  });

  check(
    "a running job goes on; the request is recorded and stays as it was first made",
    async (h) => {
      const { job } = await jobIn(h.ledger, "running");
      const first = present((await h.ledger.cancel([job.jobId]))[0]);
      const after = await see(h.ledger, job.jobId);
      expect(first).toEqual({ kind: "requested", job: after });
      expect(after).toEqual({ ...job, cancelRequestedAtMs: after.cancelRequestedAtMs });
      expect(Math.abs(present(after.cancelRequestedAtMs) - (await h.nowMs()))).toBeLessThan(30_000);
      await h.age(5 * MINUTE_MS);
      const before = await see(h.ledger, job.jobId);
      expect(present((await h.ledger.cancel([job.jobId]))[0])).toEqual({
        kind: "requested",
        job: before,
      });
      expect(await see(h.ledger, job.jobId)).toEqual(before);
      expect(await numbers(h.ledger)).toEqual([0, 1, 1]);
    },
  );

  for (const status of TERMINAL_STATUSES)
    check(`a ${status} job stays as it is`, async (h) => {
      const { job } = await jobIn(h.ledger, status);
      expect(await h.ledger.cancel([job.jobId])).toEqual([{ kind: "terminal", job }]);
      expect(await see(h.ledger, job.jobId)).toEqual(job);
    });

  check("one call cancels many, each answered in its place", async (h) => {
    const states = ["running", "succeeded", "queued"] as const;
    const jobs = [];
    for (const status of states) jobs.push((await jobIn(h.ledger, status)).job);
    const jobIds = [nextJobId(), ...jobs.map((job) => job.jobId)];
    const outcomes = await h.ledger.cancel(jobIds);
    expect(outcomes.map((outcome) => outcome.kind)).toEqual([
      "unknown",
      "requested",
      "terminal",
      "cancelled",
    ]);
    expect(await h.ledger.cancel([])).toEqual([]);
  });

  check(
    "a job that waits for its next attempt is cancelled there, without a message",
    async (h) => {
      const { job } = await jobIn(h.ledger, "running", { maxAttempts: 2 });
      expect(await settleOne(h.ledger, claimOf(job), retryIn(MINUTE_MS))).toBe(true);
      const [outcome] = await h.ledger.cancel([job.jobId]);
      expect(outcome).toMatchObject({ kind: "cancelled", job: { errorMessage: null, attempt: 1 } });
      await h.age(2 * MINUTE_MS);
      expect(await claim(h.ledger, 1)).toEqual([]);
    },
  );

  check("only the owner ends a running job, with whatever end came", async (h) => {
    for (const end of [SUCCEED, FAIL, { event: "stop" }] satisfies End[]) {
      const { job } = await jobIn(h.ledger, "running");
      await h.ledger.cancel([job.jobId]);
      const other = { ...claimOf(job), workerId: OTHER_WORKER };
      expect(await settleOne(h.ledger, other, { event: "stop" })).toBe(false);
      expect(await settleOne(h.ledger, claimOf(job), end)).toBe(true);
      expect(isTerminal((await see(h.ledger, job.jobId)).status)).toBe(true);
    }
  });
}

function noWayBackCases({ check }: Cases): void {
  for (const [name, maxAttempts] of [
    ["attempts left", 3],
    ["no attempt left", 1],
  ] as const) {
    const ends: [string, (claimed: Unstarted) => End][] = [
      ["retry", () => retryIn(0)],
      ["release", releaseOf],
    ];
    for (const [event, end] of ends)
      check(`${event} after a request, ${name}: cancelled`, async (h) => {
        const claimed = await jobIn(h.ledger, "running", { maxAttempts });
        const { job } = claimed;
        await h.ledger.cancel([job.jobId]);
        expect(await settledAs(h.ledger, claimOf(job), end(claimed))).toBe("cancelled");
        const after = await see(h.ledger, job.jobId);
        expect(after).toMatchObject({ status: "cancelled", errorMessage: null });
        expect(after.finishedAtMs).not.toBeNull();
        expect(await claim(h.ledger, 1)).toEqual([]);
        expect(await numbers(h.ledger)).toEqual([0, 0, 1]);
      });

    check(`a lost worker after a request, ${name}: cancelled`, async (h) => {
      const { job } = await jobIn(h.ledger, "running", { maxAttempts });
      await h.ledger.cancel([job.jobId]);
      const rescued = await h.ledger.rescue({ ...PATIENT, goneWorkerIds: [present(job.workerId)] });
      expect(rescued).toEqual([{ jobId: job.jobId, workerId: job.workerId, status: "cancelled" }]);
      const after = await see(h.ledger, job.jobId);
      expect(after).toMatchObject({ status: "cancelled", errorMessage: null });
      expect(await claim(h.ledger, 1)).toEqual([]);
    });
  }
}

function racingCases({ check, checkShared }: Cases): void {
  const claimOrCancel = async (ours: Ledger, theirs: Ledger): Promise<void> => {
    const jobs = await accept(ours, newJobs(40));
    const jobIds = jobs.map((job) => job.jobId);
    const [claimed, outcomes] = await Promise.all([
      Promise.all(Array.from({ length: 20 }, () => claim(theirs, 2))),
      Promise.all(jobIds.map((jobId) => ours.cancel([jobId]))),
    ]);
    const claimedIds = new Set(claimed.flat().map(({ job }) => job.jobId));
    for (const [at, [outcome]] of outcomes.entries()) {
      const jobId = present(jobIds[at]);
      const { status } = await see(ours, jobId);
      expect(present(outcome).kind).toBe(claimedIds.has(jobId) ? "requested" : "cancelled");
      expect(status).toBe(claimedIds.has(jobId) ? "running" : "cancelled");
    }
  };
  check("claim and cancel at once: one of them has it", (h) => claimOrCancel(h.ledger, h.ledger));
  checkShared("claim and cancel at once: one of them has it", async (h) =>
    claimOrCancel(h.ledger, await h.second()),
  );

  checkShared(
    "a request made elsewhere wakes the owner's watcher and stands in its next beat",
    async (h) => {
      const theirs = await h.second();
      await acceptOne(h.ledger);
      const { job } = await claimOne(h.ledger);
      const told = waitUntil(h.ledger, job.jobId, (seen) => seen?.cancelRequestedAtMs !== null);
      const [outcome] = await theirs.cancel([job.jobId]);
      expect(outcome?.kind).toBe("requested");
      expect((await told)?.status).toBe("running");
      expect(await h.ledger.heartbeat(beat(), [beatOf(job)])).toEqual({
        cancelRequested: [job.jobId],
        lost: [],
      });
    },
  );

  check("cancel has an answer for every status", async (h) => {
    const kinds = [];
    for (const status of ALL_STATUSES.toReversed()) {
      const { job } = await jobIn(h.ledger, status);
      kinds.push([status, (await h.ledger.cancel([job.jobId]))[0]?.kind]);
    }
    expect(Object.fromEntries(kinds)).toEqual({
      ...Object.fromEntries(TERMINAL_STATUSES.map((status) => [status, "terminal"])),
      running: "requested",
      queued: "cancelled",
    });
  });
}
