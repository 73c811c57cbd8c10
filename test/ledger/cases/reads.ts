/** Promise 5: looks, counts and lists. */
import { expect } from "vitest";
import { ALL_STATUSES, type Status } from "../../../src/job/state.js";
import type { Ledger } from "../../../src/ledger/ledger.js";
import {
  accept,
  acceptOne,
  claim,
  claimOf,
  claimOne,
  jobIn,
  MINUTE_MS,
  newJob,
  newJobs,
  nextJobId,
  present,
  retryIn,
  ROOMY,
  see,
  settleOne,
  SUCCEED,
} from "../acts.js";
import type { Cases } from "../harness.js";
import { pages } from "../pages.js";

export function readCases(cases: Cases): void {
  lookCases(cases);
  countCases(cases);
  listCases(cases);
  pagingCases(cases);
}

function lookCases({ check, checkShared }: Cases): void {
  check("get answers in the order asked, null where unknown, also twice the same", async (h) => {
    const [a, b] = await accept(h.ledger, newJobs(2));
    const unknown = nextJobId();
    const asked = [present(b).jobId, unknown, present(a).jobId, present(b).jobId];
    expect(await h.ledger.get(asked)).toEqual([b, null, a, b]);
    expect(await h.ledger.get([])).toEqual([]);
  });

  check("an unknown job has no result and no payload, whatever its id looks like", async (h) => {
    for (const jobId of [nextJobId(), "", "x", "__proto__", "' OR 1=1 --", "\0", "é".repeat(99)]) {
      expect(await h.ledger.get([jobId])).toEqual([null]);
      expect(await h.ledger.result(jobId)).toBeNull();
      expect(await h.ledger.payload(jobId)).toBeNull();
      expect(await h.ledger.cancel([jobId])).toEqual([{ kind: "unknown" }]);
    }
  });

  check(
    "a payload is there until the record is forgotten, or until a runner has it for good",
    async (h) => {
      const kept = h.ledger.kind !== "memory";
      for (const status of ALL_STATUSES) {
        const { job, payloadJson } = await jobIn(h.ledger, status);
        const there = kept || status === "queued";
        expect(await h.ledger.payload(job.jobId)).toBe(there ? payloadJson : null);
        await h.ledger.cancel([job.jobId]);
      }
      const { job } = await jobIn(h.ledger, "succeeded");
      await h.ledger.evict({ ttlMs: 1_000_000, keep: 0, chunk: 100 });
      expect(await h.ledger.payload(job.jobId)).toBeNull();
    },
  );

  check("what was looked at stays as it was seen", async (h) => {
    const before = await acceptOne(h.ledger);
    const copy = { ...before };
    const { job } = await claimOne(h.ledger);
    const running = { ...job };
    await h.ledger.cancel([job.jobId]);
    await settleOne(h.ledger, claimOf(job), SUCCEED);
    expect(before).toEqual(copy);
    expect(job).toEqual(running);
  });

  checkShared("what one has recorded the other sees at once", async (h) => {
    const theirs = await h.second();
    const given = newJob();
    const [job] = await accept(h.ledger, [given]);
    expect(await see(theirs, given.jobId)).toEqual(job);
    expect(await theirs.payload(given.jobId)).toBe(given.payloadJson);
    const claimed = await claimOne(theirs);
    expect(claimed.payloadJson).toBe(given.payloadJson);
    expect(await see(h.ledger, given.jobId)).toEqual(claimed.job);
    expect(await settleOne(h.ledger, claimOf(claimed.job), SUCCEED)).toBe(true);
    expect(await settleOne(theirs, claimOf(claimed.job), SUCCEED)).toBe(false);
    expect(await theirs.result(given.jobId)).toEqual(await h.ledger.result(given.jobId));
    expect(await theirs.counts()).toEqual(await h.ledger.counts());
  });
}

function countCases({ check, checkShared }: Cases): void {
  check("nothing is counted in an empty ledger", async (h) => {
    expect(await h.ledger.counts()).toEqual({
      queued: 0,
      running: 0,
      total: 0,
      oldestQueuedMs: null,
    });
  });

  check("every status is counted where it belongs", async (h) => {
    for (const status of ALL_STATUSES.toReversed()) await jobIn(h.ledger, status);
    expect(await h.ledger.counts()).toMatchObject({ queued: 1, running: 1, total: 6 });
  });

  check("the longest wait is that of due jobs, from when they were due", async (h) => {
    const waitMinutes = async (): Promise<number | null> => {
      const { oldestQueuedMs } = await h.ledger.counts();
      return oldestQueuedMs === null ? null : Math.floor(oldestQueuedMs / MINUTE_MS);
    };
    const runAtMs = (await h.nowMs()) + 10.5 * MINUTE_MS;
    await acceptOne(h.ledger, { runAtMs, task: "ocr" });
    expect(await waitMinutes()).toBeNull();
    const { jobId } = await acceptOne(h.ledger, { maxAttempts: 2 });
    await h.age(5 * MINUTE_MS);
    await acceptOne(h.ledger, { task: "late" });
    expect(await waitMinutes()).toBe(5);
    const { job } = await claimOne(h.ledger);
    expect(job.jobId).toBe(jobId);
    expect(await waitMinutes()).toBe(0);
    await h.age(8 * MINUTE_MS);
    expect(await waitMinutes()).toBe(8);
    await claim(h.ledger, 1, "worker-0000000c", ["late"]);
    expect(await waitMinutes()).toBe(2);
    await claim(h.ledger, 1, "worker-0000000c", ["ocr"]);
    expect(await waitMinutes()).toBeNull();
    await settleOne(h.ledger, claimOf(job), retryIn(3 * MINUTE_MS));
    expect(await waitMinutes()).toBeNull();
  });

  /** A job always counts once: no snapshot may miss one or show it twice. */
  const consistent = async (ledger: Ledger, looker: Ledger): Promise<void> => {
    await accept(ledger, newJobs(60, { maxAttempts: 100 }));
    let working = true;
    const work = async (): Promise<void> => {
      for (let round = 0; round < 40; round += 1) {
        const claimed = await claim(ledger, 3);
        await ledger.settle(
          claimed.map(({ job }, at) => ({
            ...claimOf(job),
            end: (round + at) % 2 === 0 ? retryIn(0) : SUCCEED,
          })),
        );
      }
      working = false;
    };
    const seen: { queued: number; running: number; total: number }[] = [];
    const count = async (): Promise<void> => {
      while (working) seen.push(await looker.counts());
    };
    await Promise.all([work(), count()]);
    expect(seen.length).toBeGreaterThan(0);
    let depth = 60;
    for (const { queued, running, total } of seen) {
      expect(total).toBe(60);
      expect(running).toBeLessThanOrEqual(3);
      expect(queued + running).toBeLessThanOrEqual(depth);
      depth = queued + running;
    }
  };
  check("counts are one snapshot while jobs move", (h) => consistent(h.ledger, h.ledger));
  checkShared("counts are one snapshot while jobs move", async (h) =>
    consistent(h.ledger, await h.second()),
  );
}

function listCases({ check }: Cases): void {
  check("newest first, as looks give them", async (h) => {
    expect(await h.ledger.list({ limit: 10 })).toEqual({ jobs: [] });
    const jobs = await accept(h.ledger, newJobs(3));
    await h.age(MINUTE_MS);
    await claimOne(h.ledger);
    const newestFirst = jobs.map((job) => job.jobId).toReversed();
    const { jobs: listed, nextCursor } = await h.ledger.list({ limit: 10 });
    expect(nextCursor).toBeUndefined();
    expect(listed).toEqual(await h.ledger.get(newestFirst));
  });

  check("filters by status and task, alone and together", async (h) => {
    const byStatus = new Map<Status, string>();
    for (const status of ALL_STATUSES.toReversed())
      byStatus.set(status, (await jobIn(h.ledger, status)).job.jobId);
    const ocr = await acceptOne(h.ledger, { task: "ocr" });
    for (const status of ALL_STATUSES) {
      const found = await pages(h.ledger, { statuses: [status], task: "echo", limit: 10 });
      expect(found).toEqual([byStatus.get(status)]);
    }
    expect(await pages(h.ledger, { task: "ocr", limit: 10 })).toEqual([ocr.jobId]);
    expect(await pages(h.ledger, { task: "nobody", limit: 10 })).toEqual([]);
    expect(await pages(h.ledger, { statuses: ["queued"], limit: 10 })).toEqual([
      ocr.jobId,
      byStatus.get("queued"),
    ]);
    const several = await pages(h.ledger, { statuses: ["failed", "succeeded"], limit: 10 });
    expect(several.sort()).toEqual([byStatus.get("failed"), byStatus.get("succeeded")].sort());
    expect(await pages(h.ledger, { statuses: ALL_STATUSES, limit: 10 })).toHaveLength(7);
    expect(await pages(h.ledger, { statuses: ["failed"], task: "ocr", limit: 10 })).toEqual([]);
  });
}

function pagingCases({ check }: Cases): void {
  check("pages of any size give every job once", async (h) => {
    const jobs = await accept(h.ledger, newJobs(13));
    const newestFirst = jobs.map((job) => job.jobId).toReversed();
    for (const limit of [1, 2, 5, 13, 14, 1_000])
      expect(await pages(h.ledger, { limit })).toEqual(newestFirst);
  });

  check("a filter pages too, over jobs spread far apart", async (h) => {
    const jobs = await accept(
      h.ledger,
      Array.from({ length: 60 }, (_, at) => newJob({ task: at % 7 === 0 ? "ocr" : "echo" })),
    );
    const wanted = jobs.filter((job) => job.task === "ocr").map((job) => job.jobId);
    for (const limit of [1, 2, 50])
      expect(await pages(h.ledger, { task: "ocr", limit })).toEqual(wanted.toReversed());
  });

  check("jobs that come while one pages change no later page", async (h) => {
    const jobs = await accept(h.ledger, newJobs(10));
    const found = await pages(h.ledger, { limit: 3 }, () => h.ledger.submit(newJobs(4), ROOMY));
    expect(found).toEqual(jobs.map((job) => job.jobId).toReversed());
  });

  check("jobs that move or go while one pages hide no other", async (h) => {
    await jobIn(h.ledger, "succeeded");
    await jobIn(h.ledger, "succeeded");
    const jobs = await accept(h.ledger, newJobs(10));
    const found = await pages(h.ledger, { limit: 3 }, async () => {
      await claim(h.ledger, 1);
      await h.ledger.evict({ ttlMs: -1, keep: 0, chunk: 1 });
    });
    expect(found).toEqual(jobs.map((job) => job.jobId).toReversed());
  });
}
