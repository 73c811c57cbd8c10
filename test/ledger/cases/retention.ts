/** Promise 6: retention forgets what ended, by age and then by number, and nothing else ever. */
import { expect } from "vitest";
import { TERMINAL_STATUSES, type TerminalStatus } from "../../../src/job/state.js";
import type { Ledger } from "../../../src/ledger/ledger.js";
import {
  accept,
  Bell,
  claim,
  claimOf,
  HOUR_MS,
  jobIn,
  look,
  MINUTE_MS,
  newJobs,
  numbers,
  see,
  statusesOf,
  SUCCEED,
} from "../acts.js";
import type { Cases } from "../harness.js";

const ALL = { ttlMs: -1, keep: 0, chunk: 1_000 };

export function retentionCases(cases: Cases): void {
  const { check, checkShared } = cases;

  checkShared("sweeps at once never forget more than there is beyond the number", async (h) => {
    const ledgers = [h.ledger, await h.second()];
    for (let round = 0; round < 5; round += 1) {
      // All end in the same moment.
      await accept(h.ledger, newJobs(20));
      const claimed = await claim(h.ledger, 20);
      await h.ledger.settle(claimed.map(({ job }) => ({ ...claimOf(job), end: SUCCEED })));
      const limit = { ttlMs: HOUR_MS, keep: 3, chunk: 5 };
      const sweeps = [...ledgers, ...ledgers, ...ledgers].map((ledger) => ledger.evict(limit));
      await Promise.all(sweeps);
      while ((await h.ledger.evict(limit)) > 0);
      expect(await numbers(h.ledger)).toEqual([0, 0, 3]);
      expect((await h.ledger.list({ limit: 10 })).jobs).toHaveLength(3);
    }
  });

  check("never a job that has not ended", async (h) => {
    await jobIn(h.ledger, "running");
    const running = (await jobIn(h.ledger, "running")).job;
    const queued = (await jobIn(h.ledger, "queued")).job;
    await h.age(10_000 * HOUR_MS);
    expect(await h.ledger.evict(ALL)).toBe(0);
    expect(await statusesOf(h.ledger, [running.jobId, queued.jobId])).toEqual([
      "running",
      "queued",
    ]);
    expect(await numbers(h.ledger)).toEqual([1, 2, 3]);
  });

  for (const status of TERMINAL_STATUSES) {
    check(`a ${status} job is forgotten by age`, async (h) => {
      const { job } = await jobIn(h.ledger, status);
      await h.age(30 * MINUTE_MS);
      expect(await h.ledger.evict({ ttlMs: HOUR_MS, keep: 100, chunk: 10 })).toBe(0);
      await h.age(31 * MINUTE_MS);
      expect(await h.ledger.evict({ ttlMs: HOUR_MS, keep: 100, chunk: 10 })).toBe(1);
      await isForgotten(h.ledger, job.jobId);
    });

    check(`a ${status} job is forgotten by number`, async (h) => {
      const { job } = await jobIn(h.ledger, status);
      expect(await h.ledger.evict({ ttlMs: HOUR_MS, keep: 1, chunk: 10 })).toBe(0);
      expect(await h.ledger.evict({ ttlMs: HOUR_MS, keep: 0, chunk: 10 })).toBe(1);
      await isForgotten(h.ledger, job.jobId);
    });
  }

  check("age counts from the end, not from the submission", async (h) => {
    const { job } = await jobIn(h.ledger, "running");
    await h.age(10 * HOUR_MS);
    await h.ledger.settle([
      { jobId: job.jobId, workerId: "worker-0000000a", attempt: 1, end: { event: "stop" } },
    ]);
    expect(await h.ledger.evict({ ttlMs: HOUR_MS, keep: 100, chunk: 10 })).toBe(0);
    expect((await see(h.ledger, job.jobId)).status).toBe("cancelled");
  });

  orderCases(cases);
}

function orderCases({ check }: Cases): void {
  /** One ended job of each status named, a minute apart; the ids, oldest end first. */
  const endOneByOne = async (
    ledger: Ledger,
    age: (ms: number) => Promise<void>,
    statuses: readonly TerminalStatus[],
  ): Promise<string[]> => {
    const jobIds = [];
    for (const status of statuses) {
      jobIds.push((await jobIn(ledger, status)).job.jobId);
      await age(MINUTE_MS);
    }
    return jobIds;
  };
  const left = async (ledger: Ledger, jobIds: readonly string[]): Promise<string[]> =>
    (await ledger.get(jobIds)).flatMap((job) => (job === null ? [] : [job.jobId]));

  check("beyond the number kept the oldest ends go first, of whatever status", async (h) => {
    const jobIds = await endOneByOne(h.ledger, (ms) => h.age(ms), [
      ...TERMINAL_STATUSES,
      ...TERMINAL_STATUSES,
    ]);
    expect(await h.ledger.evict({ ttlMs: HOUR_MS, keep: 3, chunk: 100 })).toBe(jobIds.length - 3);
    expect(await left(h.ledger, jobIds)).toEqual(jobIds.slice(-3));
    expect(await h.ledger.evict({ ttlMs: HOUR_MS, keep: 3, chunk: 100 })).toBe(0);
  });

  check("the order is that of the ends, not of the ids", async (h) => {
    const early = (await jobIn(h.ledger, "running")).job;
    const late = (await jobIn(h.ledger, "succeeded")).job;
    await h.age(MINUTE_MS);
    await h.ledger.settle([
      { jobId: early.jobId, workerId: "worker-0000000a", attempt: 1, end: { event: "stop" } },
    ]);
    expect(await h.ledger.evict({ ttlMs: HOUR_MS, keep: 1, chunk: 100 })).toBe(1);
    expect(await left(h.ledger, [early.jobId, late.jobId])).toEqual([early.jobId]);
  });

  check("first by age, then what is still too many", async (h) => {
    const old = await endOneByOne(h.ledger, (ms) => h.age(ms), [
      "failed",
      "succeeded",
      "cancelled",
    ]);
    await h.age(2 * HOUR_MS);
    const young = await endOneByOne(h.ledger, (ms) => h.age(ms), [
      "succeeded",
      "timed_out",
      "failed",
      "succeeded",
    ]);
    const limit = { ttlMs: HOUR_MS, keep: 2, chunk: 100 };
    let evicted = 0;
    for (;;) {
      const some = await h.ledger.evict(limit);
      if (some === 0) break;
      evicted += some;
    }
    expect(evicted).toBe(5);
    expect(await left(h.ledger, [...old, ...young])).toEqual(young.slice(-2));
  });

  check("age alone forgets although the number would keep them", async (h) => {
    const old = await endOneByOne(h.ledger, (ms) => h.age(ms), ["failed", "succeeded"]);
    await h.age(2 * HOUR_MS);
    const young = await endOneByOne(h.ledger, (ms) => h.age(ms), ["succeeded"]);
    expect(await h.ledger.evict({ ttlMs: HOUR_MS, keep: 100, chunk: 100 })).toBe(2);
    expect(await left(h.ledger, [...old, ...young])).toEqual(young);
  });

  check("in bounded chunks, the oldest first", async (h) => {
    const statuses = Array.from({ length: 7 }, () => "succeeded" as const);
    const jobIds = await endOneByOne(h.ledger, (ms) => h.age(ms), statuses);
    expect(await h.ledger.evict({ ...ALL, chunk: 3 })).toBe(3);
    expect(await left(h.ledger, jobIds)).toEqual(jobIds.slice(3));
    expect(await h.ledger.evict({ ...ALL, chunk: 3 })).toBe(3);
    expect(await h.ledger.evict({ ...ALL, chunk: 3 })).toBe(1);
    expect(await h.ledger.evict({ ...ALL, chunk: 3 })).toBe(0);
    expect(await numbers(h.ledger)).toEqual([0, 0, 0]);
  });

  check("two sweeps at once forget each job once, and tell its watchers", async (h) => {
    const statuses = Array.from({ length: 10 }, () => "succeeded" as const);
    const jobIds = await endOneByOne(h.ledger, (ms) => h.age(ms), statuses);
    const bells = jobIds.map((jobId) => {
      const bell = new Bell();
      h.ledger.watch(jobId, bell.ring);
      return { bell, heard: bell.heard() };
    });
    const answers = await Promise.all([h.ledger.evict(ALL), h.ledger.evict(ALL)]);
    expect(answers.reduce((sum, some) => sum + some, 0)).toBe(10);
    await Promise.all(bells.map(({ heard }) => heard));
    expect(await left(h.ledger, jobIds)).toEqual([]);
  });

  check("a result can be read as often as asked until then", async (h) => {
    const { job } = await jobIn(h.ledger, "succeeded", { requestId: "r-9" });
    for (let round = 0; round < 5; round += 1) {
      await h.age(MINUTE_MS);
      const found = await h.ledger.result(job.jobId);
      expect(found).toMatchObject({ resultJson: "1", job: { requestId: "r-9" } });
    }
    expect(await h.ledger.evict(ALL)).toBe(1);
    expect(await h.ledger.result(job.jobId)).toBeNull();
  });
}

async function isForgotten(ledger: Ledger, jobId: string): Promise<void> {
  expect(await look(ledger, jobId)).toBeNull();
  expect(await ledger.result(jobId)).toBeNull();
  expect(await ledger.payload(jobId)).toBeNull();
  expect(await ledger.list({ limit: 10 })).toEqual({ jobs: [] });
  expect(await ledger.cancel([jobId])).toEqual([{ kind: "unknown" }]);
  expect(await numbers(ledger)).toEqual([0, 0, 0]);
}
