/** Who gets which job, in which order, and never two workers the same one. */
import { expect } from "vitest";
import type { ClaimedJob, Ledger } from "../../../src/ledger/ledger.js";
import {
  accept,
  acceptOne,
  claim,
  claimOf,
  claimOne,
  HOUR_MS,
  MINUTE_MS,
  newJob,
  newJobs,
  numbers,
  OTHER_WORKER,
  present,
  releaseOf,
  retryIn,
  see,
  settleOne,
  WORKER,
} from "../acts.js";
import type { Cases } from "../harness.js";

export function claimCases(cases: Cases): void {
  ownerCases(cases);
  orderCases(cases);
  limitCases(cases);
  racingCases(cases);
}

function ownerCases({ check }: Cases): void {
  check(
    "a claim makes the worker the owner, counts the attempt, hands out the payload",
    async (h) => {
      const given = newJob();
      const [submitted] = await accept(h.ledger, [given]);
      const { job, payloadJson } = await claimOne(h.ledger);
      expect(payloadJson).toBe(given.payloadJson);
      expect(job).toEqual({
        ...submitted,
        status: "running",
        attempt: 1,
        workerId: WORKER,
        startedAtMs: job.startedAtMs,
        lastHeartbeatMs: job.startedAtMs,
      });
      expect(Math.abs(present(job.startedAtMs) - (await h.nowMs()))).toBeLessThan(30_000);
      expect(await see(h.ledger, given.jobId)).toEqual(job);
      expect(await claim(h.ledger, 1)).toEqual([]);
    },
  );

  check("while attempts are left the payload stays", async (h) => {
    const given = newJob({ maxAttempts: 2 });
    await accept(h.ledger, [given]);
    await claimOne(h.ledger);
    expect(await h.ledger.payload(given.jobId)).toBe(given.payloadJson);
  });

  check("with the last attempt the payload may leave, and is never another one", async (h) => {
    const given = newJob();
    await accept(h.ledger, [given]);
    await claimOne(h.ledger);
    expect([null, given.payloadJson]).toContain(await h.ledger.payload(given.jobId));
  });

  check("only jobs of the tasks named", async (h) => {
    const [, , constructor_] = await accept(h.ledger, [
      newJob({ task: "ocr" }),
      newJob({ task: "echo" }),
      newJob({ task: "constructor" }),
    ]);
    expect(await claim(h.ledger, 10, WORKER, [])).toEqual([]);
    expect(await claim(h.ledger, 10, WORKER, ["nobody", "toString"])).toEqual([]);
    expect(ids(await claim(h.ledger, 10, WORKER, ["constructor"]))).toEqual([
      present(constructor_).jobId,
    ]);
    const rest = await claim(h.ledger, 10, WORKER, ["echo", "ocr", "echo"]);
    expect(rest.map(({ job }) => job.task)).toEqual(["ocr", "echo"]);
  });
}

function orderCases({ check }: Cases): void {
  check("larger priorities first, then by id", async (h) => {
    const jobs = await accept(
      h.ledger,
      [0, 5, -1, 5, 0, 2].map((priority) => newJob({ priority })),
    );
    const [a, b, c, d, e, f] = jobs.map((job) => job.jobId);
    expect(ids(await claim(h.ledger, 4))).toEqual([b, d, f, a]);
    expect(ids(await claim(h.ledger, 4))).toEqual([e, c]);
  });

  check("within a priority by due time, over all tasks", async (h) => {
    const nowMs = await h.nowMs();
    const [late, soon, urgent] = await accept(h.ledger, [
      newJob({ runAtMs: nowMs + 3 * MINUTE_MS }),
      newJob({ runAtMs: nowMs + 2 * MINUTE_MS, task: "ocr" }),
      newJob({ runAtMs: nowMs + 4 * MINUTE_MS, priority: 1 }),
    ]);
    await h.age(5 * MINUTE_MS);
    const last = await acceptOne(h.ledger);
    const claimed = await claim(h.ledger, 10, WORKER, ["echo", "ocr"]);
    expect(ids(claimed)).toEqual([urgent, soon, late, last].map((job) => present(job).jobId));
  });

  check("not before it is due, whatever its priority", async (h) => {
    const runAtMs = (await h.nowMs()) + 10 * MINUTE_MS;
    const delayed = await acceptOne(h.ledger, { runAtMs, priority: 9 });
    const plain = await acceptOne(h.ledger);
    expect(ids(await claim(h.ledger, 10))).toEqual([plain.jobId]);
    await h.age(9 * MINUTE_MS);
    expect(await claim(h.ledger, 10)).toEqual([]);
    await h.age(2 * MINUTE_MS);
    expect(ids(await claim(h.ledger, 10))).toEqual([delayed.jobId]);
  });

  check("a released job keeps its place, a retried one queues up again", async (h) => {
    const jobs = await accept(h.ledger, newJobs(3, { maxAttempts: 3 }));
    const [a, b, c] = jobs.map((job) => job.jobId);
    const [first, second] = await claim(h.ledger, 2);
    await h.age(MINUTE_MS);
    expect(await settleOne(h.ledger, claimOf(present(first).job), retryIn(0))).toBe(true);
    const { payloadJson } = present(second);
    const released = { job: await see(h.ledger, present(b)), payloadJson };
    expect(await settleOne(h.ledger, claimOf(released.job), releaseOf(released))).toBe(true);
    expect(ids(await claim(h.ledger, 3))).toEqual([b, c, a]);
  });
}

function limitCases({ check }: Cases): void {
  check("never more than the limit, and nothing for a limit of 0 or less", async (h) => {
    await accept(h.ledger, newJobs(50));
    expect(await claim(h.ledger, 0)).toEqual([]);
    expect(await claim(h.ledger, -1)).toEqual([]);
    expect(await numbers(h.ledger)).toEqual([50, 0, 50]);
    expect(await claim(h.ledger, 3)).toHaveLength(3);
    expect(await numbers(h.ledger)).toEqual([47, 3, 50]);
    expect(await claim(h.ledger, 1)).toHaveLength(1);
    expect(await claim(h.ledger, 1_000)).toHaveLength(46);
    expect(await numbers(h.ledger)).toEqual([0, 50, 50]);
  });

  check("the limit holds although jobs of many tasks and priorities wait", async (h) => {
    await accept(
      h.ledger,
      Array.from({ length: 40 }, (_, at) =>
        newJob({ task: at % 2 === 0 ? "echo" : "ocr", priority: at % 5 }),
      ),
    );
    expect(await claim(h.ledger, 7, WORKER, ["echo", "ocr"])).toHaveLength(7);
    expect(await numbers(h.ledger)).toEqual([33, 7, 40]);
  });
}

function racingCases({ check, checkShared }: Cases): void {
  const claimAllOnce = async (ledgers: readonly Ledger[]): Promise<void> => {
    const jobs = await accept(present(ledgers[0]), newJobs(60));
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, at) =>
        claim(present(ledgers[at % ledgers.length]), 3, at % 2 === 0 ? WORKER : OTHER_WORKER),
      ),
    );
    expect(ids(answers.flat()).sort()).toEqual(jobs.map((job) => job.jobId));
    for (const answer of answers) expect(answer.length).toBeLessThanOrEqual(3);
    const found = await present(ledgers[0]).get(ids(answers.flat()));
    expect(found).toEqual(answers.flat().map(({ job }) => job));
  };
  check("many claims at once share the jobs, each to one worker", (h) =>
    claimAllOnce([h.ledger, h.ledger]),
  );
  checkShared("many claims at once share the jobs, each to one worker", async (h) =>
    claimAllOnce([h.ledger, await h.second()]),
  );

  check("a job that waits for hours is still claimed", async (h) => {
    const job = await acceptOne(h.ledger);
    await h.age(48 * HOUR_MS);
    expect((await claimOne(h.ledger)).job.jobId).toBe(job.jobId);
  });
}

function ids(claimed: readonly ClaimedJob[]): string[] {
  return claimed.map(({ job }) => job.jobId);
}
