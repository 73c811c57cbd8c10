/** Maintenance: jobs that waited too long, that nobody can run, whose worker is lost. */
import { expect } from "vitest";
import { isTerminal } from "../../../src/job/state.js";
import {
  STUCK_MESSAGE,
  WAIT_TIMEOUT_MESSAGE,
  type Ledger,
  type RescueLimit,
} from "../../../src/ledger/ledger.js";
import {
  accept,
  acceptOne,
  beat,
  beatOf,
  claim,
  claimOf,
  claimOne,
  HOUR_MS,
  jobIn,
  MINUTE_MS,
  newJob,
  newJobs,
  numbers,
  OTHER_WORKER,
  PATIENT,
  present,
  releaseOf,
  retryIn,
  see,
  settleOne,
  statusesOf,
  SUCCEED,
  WORKER,
} from "../acts.js";
import type { Cases } from "../harness.js";

export function sweepCases(cases: Cases): void {
  expireCases(cases);
  rejectCases(cases);
  stuckCases(cases);
  rescueCases(cases);
  racingCases(cases);
}

function expireCases({ check }: Cases): void {
  const limit = { waitLimitMs: 5 * MINUTE_MS, chunk: 100 };

  check("expire ends what has waited for longer than the limit, and nothing else", async (h) => {
    const running = (await jobIn(h.ledger, "running")).job;
    const ended = (await jobIn(h.ledger, "succeeded")).job;
    const old = await acceptOne(h.ledger);
    await h.age(4 * MINUTE_MS);
    expect(await h.ledger.expire(limit)).toBe(0);
    await h.age(2 * MINUTE_MS);
    const young = await acceptOne(h.ledger);
    expect(await h.ledger.expire(limit)).toBe(1);
    const after = await see(h.ledger, old.jobId);
    expect(after).toMatchObject({ status: "timed_out", errorMessage: WAIT_TIMEOUT_MESSAGE });
    expect(after.finishedAtMs).not.toBeNull();
    expect(
      await statusesOf(
        h.ledger,
        [running, ended, young].map((job) => job.jobId),
      ),
    ).toEqual(["running", "succeeded", "queued"]);
    expect(await h.ledger.expire(limit)).toBe(0);
    expect(await numbers(h.ledger)).toEqual([1, 1, 4]);
  });

  check("a delayed job waits from the time at which it is due", async (h) => {
    const runAtMs = (await h.nowMs()) + 60 * MINUTE_MS;
    const { jobId } = await acceptOne(h.ledger, { runAtMs });
    await h.age(30 * MINUTE_MS);
    expect(await h.ledger.expire(limit)).toBe(0);
    await h.age(32 * MINUTE_MS);
    expect(await h.ledger.expire(limit)).toBe(0);
    await h.age(10 * MINUTE_MS);
    expect(await h.ledger.expire(limit)).toBe(1);
    expect((await see(h.ledger, jobId)).status).toBe("timed_out");
  });

  check("a job queued again by retry or rescue has its whole wait before it", async (h) => {
    await accept(h.ledger, newJobs(2, { maxAttempts: 2 }));
    const [retried] = await claim(h.ledger, 1);
    const [rescued] = await claim(h.ledger, 1, OTHER_WORKER);
    await h.age(HOUR_MS);
    await settleOne(h.ledger, claimOf(present(retried).job), retryIn(0));
    await h.ledger.rescue({ ...PATIENT, goneWorkerIds: [OTHER_WORKER] });
    const jobIds = [retried, rescued].map((one) => present(one).job.jobId);
    expect(await statusesOf(h.ledger, jobIds)).toEqual(["queued", "queued"]);
    expect(await h.ledger.expire(limit)).toBe(0);
    await h.age(6 * MINUTE_MS);
    expect(await h.ledger.expire(limit)).toBe(2);
  });

  check("expire moves one chunk at a time", async (h) => {
    await accept(h.ledger, newJobs(7));
    await h.age(6 * MINUTE_MS);
    const answers = [];
    for (let round = 0; round < 4; round += 1)
      answers.push(await h.ledger.expire({ ...limit, chunk: 3 }));
    expect(answers).toEqual([3, 3, 1, 0]);
  });
}

function rejectCases({ check }: Cases): void {
  const limit = {
    workerId: WORKER,
    graceMs: 5 * MINUTE_MS,
    workerTimeoutMs: 2 * MINUTE_MS,
    chunk: 100,
  };

  check("reject ends due jobs of tasks that no living worker runs", async (h) => {
    const echo = await acceptOne(h.ledger, { task: "echo" });
    const ocr = await acceptOne(h.ledger, { task: "ocr" });
    const running = (await jobIn(h.ledger, "running", { task: "gone" })).job;
    const runAtMs = (await h.nowMs()) + 60 * MINUTE_MS;
    const delayed = await acceptOne(h.ledger, { task: "ocr", runAtMs });
    await h.age(4 * MINUTE_MS);
    expect(await h.ledger.reject(limit)).toBe(0);
    await h.age(2 * MINUTE_MS);
    const young = await acceptOne(h.ledger, { task: "ocr" });
    await h.ledger.heartbeat(beat(WORKER, { tasks: ["echo", "other"] }), []);
    expect(await h.ledger.reject(limit)).toBe(1);
    const after = await see(h.ledger, ocr.jobId);
    expect(after.status).toBe("failed");
    expect(after.errorMessage).toMatch(/^\w+: .*\bocr\b/);
    expect(after.finishedAtMs).not.toBeNull();
    expect(
      await statusesOf(
        h.ledger,
        [echo, running, delayed, young].map((job) => job.jobId),
      ),
    ).toEqual(["queued", "running", "queued", "queued"]);
    expect(await h.ledger.reject(limit)).toBe(0);
  });

  check("a worker without a beat for long is not living", async (h) => {
    const { jobId } = await acceptOne(h.ledger);
    await h.ledger.heartbeat(beat(), []);
    await h.age(6 * MINUTE_MS);
    await h.ledger.heartbeat(beat(OTHER_WORKER, { tasks: ["ocr"] }), []);
    const asked = { ...limit, workerId: OTHER_WORKER };
    expect(await h.ledger.reject({ ...asked, workerTimeoutMs: 7 * MINUTE_MS })).toBe(0);
    expect(await h.ledger.reject(asked)).toBe(1);
    expect((await see(h.ledger, jobId)).status).toBe("failed");
  });

  check("a worker that is not among the living ends nothing", async (h) => {
    await acceptOne(h.ledger, { task: "echo" });
    expect(await h.ledger.reject({ ...limit, graceMs: -1 })).toBe(0);
    await h.ledger.heartbeat(beat(WORKER, { tasks: ["ocr"] }), []);
    await h.age(6 * MINUTE_MS);
    expect(await h.ledger.reject(limit)).toBe(0);
    await h.ledger.heartbeat(beat(OTHER_WORKER, { tasks: ["ocr"] }), []);
    expect(await h.ledger.reject(limit)).toBe(0);
    await h.ledger.heartbeat(beat(WORKER, { tasks: ["ocr"] }), []);
    expect(await h.ledger.reject(limit)).toBe(1);
  });

  check("a task name is no part of another", async (h) => {
    await acceptOne(h.ledger, { task: "ocr" });
    await h.age(6 * MINUTE_MS);
    await h.ledger.heartbeat(beat(WORKER, { tasks: ["ocr2", "my-ocr", "oc"] }), []);
    expect(await h.ledger.reject(limit)).toBe(1);
  });

  check("reject moves one chunk at a time, over all tasks", async (h) => {
    await accept(
      h.ledger,
      Array.from({ length: 7 }, (_, at) => newJob({ task: `t${String(at % 3)}` })),
    );
    await h.age(6 * MINUTE_MS);
    await h.ledger.heartbeat(beat(WORKER, { tasks: ["other"] }), []);
    const answers = [];
    for (let round = 0; round < 4; round += 1)
      answers.push(await h.ledger.reject({ ...limit, chunk: 3 }));
    expect(answers).toEqual([3, 3, 1, 0]);
  });
}

function stuckCases({ check }: Cases): void {
  const limit: RescueLimit = {
    jobTimeoutMs: 60 * MINUTE_MS,
    workerTimeoutMs: 2 * MINUTE_MS,
    goneWorkerIds: [],
    chunk: 100,
  };
  const rescuedIds = async (ledger: Ledger, given = limit): Promise<string[]> =>
    (await ledger.rescue(given)).map((one) => one.jobId);

  check("a job may run for days while it beats", async (h) => {
    const { job } = await jobIn(h.ledger, "running");
    for (let hour = 0; hour < 72; hour += 1) {
      await h.ledger.heartbeat(beat(), [beatOf(job)]);
      await h.age(MINUTE_MS);
      expect(await h.ledger.rescue(limit)).toEqual([]);
      await h.age(59 * MINUTE_MS);
    }
    await h.ledger.heartbeat(beat(), [beatOf(job)]);
    expect(await h.ledger.rescue(limit)).toEqual([]);
    expect(await settleOne(h.ledger, claimOf(job), SUCCEED)).toBe(true);
  });

  check("a job without a beat for job_timeout is stuck although its worker lives", async (h) => {
    await accept(h.ledger, newJobs(2));
    const [silent, beating] = (await claim(h.ledger, 2)).map(({ job }) => job);
    await h.age(55 * MINUTE_MS);
    await h.ledger.heartbeat(beat(), [beatOf(present(beating))]);
    expect(await rescuedIds(h.ledger)).toEqual([]);
    await h.age(6 * MINUTE_MS);
    await h.ledger.heartbeat(beat(), [beatOf(present(beating))]);
    expect(await rescuedIds(h.ledger)).toEqual([present(silent).jobId]);
    expect((await h.ledger.workers()).map((row) => row.workerId)).toEqual([WORKER]);
  });

  check(
    "a job whose worker has not beaten for worker_timeout is stuck, and the worker forgotten",
    async (h) => {
      await h.ledger.heartbeat(beat(), []);
      const { job } = await jobIn(h.ledger, "running");
      expect(await rescuedIds(h.ledger)).toEqual([]);
      await h.age(3 * MINUTE_MS);
      await h.ledger.heartbeat(beat(OTHER_WORKER), []);
      expect(await rescuedIds(h.ledger)).toEqual([job.jobId]);
      expect((await h.ledger.workers()).map((row) => row.workerId)).toEqual([OTHER_WORKER]);
    },
  );

  check("a worker that is known to be gone is lost however recent its beat", async (h) => {
    await h.ledger.heartbeat(beat(), []);
    await h.ledger.heartbeat(beat(OTHER_WORKER), []);
    const { job } = await jobIn(h.ledger, "running");
    await acceptOne(h.ledger);
    const theirs = (await claimOne(h.ledger, OTHER_WORKER)).job;
    expect(await rescuedIds(h.ledger, { ...limit, goneWorkerIds: [WORKER] })).toEqual([job.jobId]);
    expect((await h.ledger.workers()).map((row) => row.workerId)).toEqual([OTHER_WORKER]);
    expect((await see(h.ledger, theirs.jobId)).status).toBe("running");
  });

  check("a worker without a record is judged by its jobs' beats", async (h) => {
    const { job } = await jobIn(h.ledger, "running");
    await h.age(MINUTE_MS);
    expect(await rescuedIds(h.ledger)).toEqual([]);
    await h.age(2 * MINUTE_MS);
    expect(await rescuedIds(h.ledger)).toEqual([job.jobId]);
  });

  check("a worker that left has its last jobs found", async (h) => {
    const { job } = await jobIn(h.ledger, "running");
    await h.ledger.heartbeat(beat(), [beatOf(job)]);
    await h.ledger.leave(WORKER);
    await h.age(3 * MINUTE_MS);
    expect(await rescuedIds(h.ledger)).toEqual([job.jobId]);
  });

  check("queued and ended jobs are never stuck", async (h) => {
    for (const status of ["succeeded", "failed", "timed_out", "cancelled", "queued"] as const)
      await jobIn(h.ledger, status);
    await h.age(100 * HOUR_MS);
    expect(await h.ledger.rescue({ ...limit, goneWorkerIds: [WORKER] })).toEqual([]);
  });
}

function rescueCases({ check }: Cases): void {
  const gone = { ...PATIENT, goneWorkerIds: [WORKER] };

  check("without an attempt left it fails, and says why", async (h) => {
    const { job } = await jobIn(h.ledger, "running");
    expect(await h.ledger.rescue(gone)).toEqual([
      { jobId: job.jobId, workerId: WORKER, status: "failed" },
    ]);
    const after = await see(h.ledger, job.jobId);
    expect(after).toMatchObject({ status: "failed", errorMessage: STUCK_MESSAGE, attempt: 1 });
    expect(after.finishedAtMs).not.toBeNull();
    expect(await numbers(h.ledger)).toEqual([0, 0, 1]);
  });

  check(
    "with attempts left it is claimable at once, with its payload and the trail of the loss",
    async (h) => {
      const { job, payloadJson } = await jobIn(h.ledger, "running", { maxAttempts: 2 });
      expect(await h.ledger.rescue(gone)).toEqual([
        { jobId: job.jobId, workerId: WORKER, status: "queued" },
      ]);
      expect(await see(h.ledger, job.jobId)).toMatchObject({
        status: "queued",
        errorMessage: STUCK_MESSAGE,
        attempt: 1,
        finishedAtMs: null,
      });
      const again = await claimOne(h.ledger, OTHER_WORKER);
      expect(again).toMatchObject({ payloadJson, job: { jobId: job.jobId, attempt: 2 } });
      expect(await h.ledger.rescue({ ...PATIENT, goneWorkerIds: [OTHER_WORKER] })).toEqual([
        { jobId: job.jobId, workerId: OTHER_WORKER, status: "failed" },
      ]);
    },
  );

  check("an attempt that was released does not count against the job", async (h) => {
    await acceptOne(h.ledger, { maxAttempts: 1 });
    const first = await claimOne(h.ledger);
    expect(await settleOne(h.ledger, claimOf(first.job), releaseOf(first))).toBe(true);
    const second = await claimOne(h.ledger, OTHER_WORKER);
    expect(second.job.attempt).toBe(1);
    expect(await h.ledger.rescue(gone)).toEqual([]);
  });

  check(
    "rescue moves one chunk at a time, and knows the worker until its last job is found",
    async (h) => {
      await h.ledger.heartbeat(beat(), []);
      await accept(h.ledger, newJobs(7));
      await claim(h.ledger, 7);
      const answers = [];
      for (let round = 0; round < 4; round += 1) {
        const known = (await h.ledger.workers()).map((row) => row.workerId);
        answers.push((await h.ledger.rescue({ ...gone, goneWorkerIds: known, chunk: 3 })).length);
      }
      expect(answers).toEqual([3, 3, 1, 0]);
      expect(await h.ledger.workers()).toEqual([]);
      expect(await numbers(h.ledger)).toEqual([0, 0, 7]);
    },
  );
}

function racingCases({ check, checkShared }: Cases): void {
  /** Owner and rescuer at once: one of them ends it, and the owner is told which. */
  const settleOrRescue = async (ours: Ledger, theirs: Ledger): Promise<void> => {
    await accept(ours, newJobs(40));
    const jobs = (await claim(ours, 40)).map(({ job }) => job);
    const [settled, ...rescues] = await Promise.all([
      Promise.all(jobs.map((job) => settleOne(ours, claimOf(job), SUCCEED))),
      ...Array.from({ length: 8 }, (_, at) =>
        (at % 2 === 0 ? ours : theirs).rescue({ ...PATIENT, goneWorkerIds: [WORKER], chunk: 10 }),
      ),
    ]);
    const rescued = rescues.flat().map((one) => one.jobId);
    expect(new Set(rescued).size).toBe(rescued.length);
    for (const [at, job] of jobs.entries()) {
      expect(rescued.includes(job.jobId)).toBe(settled[at] === false);
      expect((await see(ours, job.jobId)).status).toBe(
        settled[at] === true ? "succeeded" : "failed",
      );
    }
  };
  check("owner and rescuers at once: one of them ends each job", (h) =>
    settleOrRescue(h.ledger, h.ledger),
  );
  checkShared("owner and rescuers at once: one of them ends each job", async (h) =>
    settleOrRescue(h.ledger, await h.second()),
  );

  check("sweeps and users at once leave every job ended once", async (h) => {
    const jobs = await accept(h.ledger, newJobs(30));
    await h.age(6 * MINUTE_MS);
    await h.ledger.heartbeat(beat(WORKER, { tasks: ["other"] }), []);
    const [expired, rejected, outcomes] = await Promise.all([
      h.ledger.expire({ waitLimitMs: MINUTE_MS, chunk: 8 }),
      h.ledger.reject({
        workerId: WORKER,
        graceMs: MINUTE_MS,
        workerTimeoutMs: MINUTE_MS,
        chunk: 8,
      }),
      h.ledger.cancel(jobs.map((job) => job.jobId)),
    ]);
    const cancelled = outcomes.filter((outcome) => outcome.kind === "cancelled").length;
    expect(expired + rejected + cancelled).toBe(30);
    const found = await h.ledger.get(jobs.map((job) => job.jobId));
    expect(found.every((job) => job !== null && isTerminal(job.status))).toBe(true);
    expect(await numbers(h.ledger)).toEqual([0, 0, 30]);
  });
}
