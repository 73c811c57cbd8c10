/** What went wrong with attempts that were not the last: bounded, in order, and kept to the end. */
import { expect } from "vitest";
import {
  MAX_ATTEMPT_ERROR_CHARS,
  MAX_ATTEMPT_ERRORS,
  MAX_ERROR_CHARS,
} from "../../../src/job/limits.js";
import { STUCK_MESSAGE, type Ledger } from "../../../src/ledger/ledger.js";
import {
  accept,
  acceptOne,
  claimOf,
  claimOne,
  FAIL,
  jobIn,
  MINUTE_MS,
  newJobs,
  OTHER_WORKER,
  PATIENT,
  present,
  releaseOf,
  retryIn,
  see,
  settleOne,
  SUCCEED,
  WORKER,
} from "../acts.js";
import type { Cases } from "../harness.js";

async function tryAndRetry(ledger: Ledger, message: string, workerId = WORKER): Promise<void> {
  const { job } = await claimOne(ledger, workerId);
  expect(await settleOne(ledger, claimOf(job), retryIn(0, message))).toBe(true);
}

export function attemptErrorCases({ check, checkShared }: Cases): void {
  check("none where nothing was tried again, however it ended", async (h) => {
    for (const status of [
      "queued",
      "running",
      "succeeded",
      "failed",
      "timed_out",
      "cancelled",
    ] as const) {
      const { job } = await jobIn(h.ledger, status, { maxAttempts: 3 });
      expect(job.attemptErrors).toEqual([]);
      await h.ledger.cancel([job.jobId]);
    }
  });

  check("each retry and each rescue adds one, with its worker and its time", async (h) => {
    const { jobId } = await acceptOne(h.ledger, { maxAttempts: 4 });
    await tryAndRetry(h.ledger, "Error: one");
    await h.age(10 * MINUTE_MS);
    await claimOne(h.ledger, OTHER_WORKER);
    await h.ledger.rescue({ ...PATIENT, goneWorkerIds: [OTHER_WORKER] });
    await h.age(10 * MINUTE_MS);
    await tryAndRetry(h.ledger, "Error: three");
    const waiting = await see(h.ledger, jobId);
    expect(waiting.errorMessage).toBe("Error: three");
    const nowMs = await h.nowMs();
    const ages = waiting.attemptErrors.map(({ atMs }) => Math.round((nowMs - atMs) / MINUTE_MS));
    expect(ages).toEqual([20, 10, 0]);
    const told = waiting.attemptErrors.map(({ attempt, workerId, errorMessage }) => [
      attempt,
      workerId,
      errorMessage,
    ]);
    expect(told).toEqual([
      [1, WORKER, "Error: one"],
      [2, OTHER_WORKER, STUCK_MESSAGE],
      [3, WORKER, "Error: three"],
    ]);
    const { job } = await claimOne(h.ledger);
    expect(job).toMatchObject({ errorMessage: null, attemptErrors: waiting.attemptErrors });
    expect(await settleOne(h.ledger, claimOf(job), FAIL)).toBe(true);
    const ended = present(await h.ledger.result(jobId)).job;
    expect(ended).toMatchObject({
      errorMessage: "Error: it broke",
      attemptErrors: waiting.attemptErrors,
    });
    const { jobs } = await h.ledger.list({ limit: 1 });
    expect(jobs).toEqual([ended]);
  });

  check("a release is none, nor is what a cancel made of a retry", async (h) => {
    const { jobId } = await acceptOne(h.ledger, { maxAttempts: 3 });
    const first = await claimOne(h.ledger);
    expect(await settleOne(h.ledger, claimOf(first.job), releaseOf(first))).toBe(true);
    expect((await see(h.ledger, jobId)).attemptErrors).toEqual([]);
    await tryAndRetry(h.ledger, "Error: one");
    const { job } = await claimOne(h.ledger);
    await h.ledger.cancel([jobId]);
    expect(await settleOne(h.ledger, claimOf(job), retryIn(0, "Error: two"))).toBe(true);
    const ended = await see(h.ledger, jobId);
    expect(ended).toMatchObject({ status: "cancelled", errorMessage: null });
    expect(ended.attemptErrors.map(({ errorMessage }) => errorMessage)).toEqual(["Error: one"]);
  });

  check("the newest ten are kept", async (h) => {
    const { jobId } = await acceptOne(h.ledger, { maxAttempts: 25 });
    for (let attempt = 1; attempt <= 13; attempt += 1)
      await tryAndRetry(h.ledger, `Error: ${String(attempt)}`);
    const { attemptErrors } = await see(h.ledger, jobId);
    expect(attemptErrors).toHaveLength(MAX_ATTEMPT_ERRORS);
    expect(attemptErrors.map(({ attempt }) => attempt)).toEqual([4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
    expect(attemptErrors.at(-1)?.errorMessage).toBe("Error: 13");
  });

  check("F19, F29: hostile messages are cleaned, and each is bounded", async (h) => {
    const { jobId } = await acceptOne(h.ledger, { maxAttempts: 9 });
    const hostile = `a\0b\ud83d "q" \\ {"x":1} \u2028 漢字 '); --`;
    const long = `Error: ${"👍".repeat(MAX_ERROR_CHARS)}`;
    for (const message of [hostile, long, "", "x".repeat(MAX_ATTEMPT_ERROR_CHARS), "Error: short"])
      await tryAndRetry(h.ledger, message);
    const kept = (await see(h.ledger, jobId)).attemptErrors.map((one) => one.errorMessage);
    expect(kept[0]).toBe(`a\ufffdb\ufffd "q" \\ {"x":1} \u2028 漢字 '); --`);
    expect(present(kept[1]).length).toBeLessThanOrEqual(MAX_ATTEMPT_ERROR_CHARS);
    expect(present(kept[1]).endsWith("👍…")).toBe(true);
    expect(kept.slice(2)).toEqual(["", "x".repeat(MAX_ATTEMPT_ERROR_CHARS), "Error: short"]);
    const { job } = await claimOne(h.ledger);
    expect(await settleOne(h.ledger, claimOf(job), SUCCEED)).toBe(true);
  });

  check("many that are settled together keep each its own", async (h) => {
    const jobs = await accept(h.ledger, newJobs(3, { maxAttempts: 3 }));
    const ids = jobs.map(({ jobId }) => jobId);
    const claimed = await h.ledger.claim({ workerId: WORKER, tasks: ["echo"], limit: 3 });
    await h.ledger.settle(
      claimed.map(({ job }, at) => ({
        ...claimOf(job),
        end: at === 1 ? SUCCEED : retryIn(0, `Error: ${job.jobId}${"!".repeat(at * 600)}`),
      })),
    );
    const found = await h.ledger.get(ids);
    const kept = found.map((job) => present(job).attemptErrors.map((one) => one.errorMessage));
    expect(kept.map((messages) => messages.map((text) => text.slice(0, 33)))).toEqual(
      ids.map((jobId, at) => (at === 1 ? [] : [`Error: ${jobId}`])),
    );
  });

  checkShared("another process sees them", async (h) => {
    const { jobId } = await acceptOne(h.ledger, { maxAttempts: 3 });
    await tryAndRetry(h.ledger, "Error: one");
    const theirs = await h.second();
    expect(await see(theirs, jobId)).toEqual(await see(h.ledger, jobId));
    await tryAndRetry(theirs, "Error: two");
    expect((await see(h.ledger, jobId)).attemptErrors).toHaveLength(2);
  });
}
