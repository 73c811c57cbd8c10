import { describe, expect, test } from "vitest";
import { encodePayload } from "../job/payload.js";
import { STUCK_MESSAGE, type WorkerBeat } from "../ledger/ledger.js";
import { openMemoryLedger } from "../ledger/memory/memory-ledger.js";
import type { ProcessIdentity, Processes } from "../runtime/process-identity.js";
import { Connection, HeldTask, submitted, withRig } from "../../test/engine-rig.js";
import { settled, VirtualClock } from "../../test/virtual-clock.js";

const HERE: ProcessIdentity = { host: "here/boot/ns", pid: 1, pidStamp: "100" };
const GONE_PID = 66;

const processes: Processes = {
  self: HERE,
  isGone: ({ host, pid }) => host === HERE.host && pid === GONE_PID,
  wasRestarted: () => false,
  isRunning: () => false,
};

function beatOf(workerId: string, identity: ProcessIdentity, tasks: string[]): WorkerBeat {
  return {
    workerId,
    ...identity,
    state: "running",
    tasks,
    maxWorkers: 1,
    processed: 0,
    failed: 0,
    cancelled: 0,
  };
}

function setUp() {
  const clock = new VirtualClock();
  const connection = new Connection(openMemoryLedger({ clock }));
  const { ledger } = connection;
  let ids = 0;
  /** A job that another worker runs, or has left behind. */
  const claimedElsewhere = async (
    workerId: string,
    identity: ProcessIdentity,
    maxAttempts = 1,
  ): Promise<string> => {
    const jobId = `01ARZ3NDEKTSV4RRFFQ69G${String((ids += 1)).padStart(4, "0")}`;
    const payloadJson = encodePayload("t", "{}");
    await ledger.heartbeat(beatOf(workerId, identity, ["t"]), []);
    await ledger.submit([{ jobId, task: "t", schemaVersion: 1, payloadJson, maxAttempts }], {
      maxDepth: 1_000,
    });
    const claimed = await ledger.claim({ workerId, tasks: ["t"], limit: 1 });
    if (claimed[0]?.job.jobId !== jobId) throw new Error("another job was claimed");
    return jobId;
  };
  const statusOf = async (jobId: string) => (await ledger.get([jobId]))[0]?.status ?? null;
  return { clock, connection, ledger, claimedElsewhere, statusOf };
}

describe("stuck detection", () => {
  test("F13: at start-up finds the jobs of a process of this host that is gone, at once", async () => {
    const { clock, ledger, claimedElsewhere, statusOf } = setUp();
    const gone = { ...HERE, pid: GONE_PID };
    const away = { ...gone, host: "elsewhere/boot/ns" };
    const lost = await claimedElsewhere("worker-0000dead", gone);
    const again = await claimedElsewhere("worker-0001dead", gone, 2);
    const alive = await claimedElsewhere("worker-0000beef", away);
    const task = new HeldTask("t");
    await withRig({ clock, ledger, processes, tasks: [task.options] }, async (rig) => {
      await settled();
      await clock.advance(0);
      expect((await ledger.get([lost]))[0]).toMatchObject({
        status: "failed",
        errorMessage: STUCK_MESSAGE,
      });
      expect((await ledger.get([again]))[0]).toMatchObject({ status: "running", attempt: 2 });
      expect(await statusOf(alive)).toBe("running");
      expect(rig.logs.filter(({ message }) => message === "the job's worker was lost").length).toBe(
        2,
      );
    });
  });

  test("finds a worker that is silent for worker_timeout, with or without a worker here", async () => {
    for (const worker of [true, false]) {
      const { clock, ledger, claimedElsewhere, statusOf } = setUp();
      const jobId = await claimedElsewhere("worker-0000beef", { ...HERE, host: "away" });
      await withRig({ clock, ledger, processes, worker }, async () => {
        await clock.advance(29_000);
        expect(await statusOf(jobId)).toBe("running");
        await clock.advance(12_000);
        expect(await statusOf(jobId)).toBe("failed");
      });
    }
  });

  test("F13, F35: goes on while old jobs can't be forgotten or overdue ones ended, which diagnostics tell", async () => {
    for (const verb of ["evict", "expire"] as const) {
      const { clock, connection, ledger, claimedElsewhere, statusOf } = setUp();
      const jobId = await claimedElsewhere("worker-0000beef", { ...HERE, host: "away" });
      const waits = { jobId: "01ARZ3NDEKTSV4RRFFQ69G5FAV", task: "t", schemaVersion: 1 };
      await ledger.submit([{ ...waits, payloadJson: "{}" }], { maxDepth: 10 });
      connection.down = [verb];
      const settings = { asyncTimeoutMs: 300_000 };
      await withRig({ clock, ledger, processes, worker: false, settings }, async (rig) => {
        const isTold = async (): Promise<boolean> => {
          const { problems } = await rig.engine.diagnose();
          return problems.some(({ kind }) => kind === "maintenance_down");
        };
        // For long, with a break.
        await clock.advance(15_000);
        expect(await isTold()).toBe(true);
        for (let second = 15; second < 41; second += 1) {
          connection.down = second === 20 ? "none" : [verb];
          await clock.advance(1_000);
        }
        expect(await statusOf(jobId)).toBe("failed");
        connection.down = "none";
        await clock.advance(11_000);
        expect(await isTold()).toBe(false);
      });
    }
  });

  test("leaves others the time to beat after the whole machine was suspended", async () => {
    const { clock, ledger, claimedElsewhere, statusOf } = setUp();
    const away = { ...HERE, pid: 7 };
    const jobId = await claimedElsewhere("worker-0000beef", away);
    await withRig({ clock, ledger, processes, worker: false }, async () => {
      await clock.advance(5_000);
      await clock.suspend(3_600_000);
      await settled();
      expect(await statusOf(jobId)).toBe("running");
      await ledger.heartbeat(beatOf("worker-0000beef", away, ["t"]), [{ jobId, attempt: 1 }]);
      await clock.advance(15_000);
      expect(await statusOf(jobId)).toBe("running");
    });
  });

  test("F1: leaves others the time to beat after the ledger was away, with or without a worker here", async () => {
    for (const worker of [true, false]) {
      const { clock, connection, ledger, claimedElsewhere, statusOf } = setUp();
      const away = { ...HERE, host: "away" };
      const tasks = [new HeldTask("other").options];
      await withRig({ clock, ledger, processes, worker, tasks }, async () => {
        const lives = await claimedElsewhere("worker-0000beef", away);
        const lost = await claimedElsewhere("worker-0000dead", away);
        const gone = await claimedElsewhere("worker-0001dead", { ...HERE, pid: GONE_PID });
        const waits = { jobId: "01ARZ3NDEKTSV4RRFFQ69G5FAV", task: "t", schemaVersion: 1 };
        await ledger.submit([{ ...waits, payloadJson: "{}" }], { maxDepth: 10 });
        await clock.advance(1_000);
        connection.down = "all";
        await clock.advance(90_000);
        connection.down = "none";
        await clock.advance(15_000);
        expect(await statusOf(gone)).toBe("failed");
        expect(await statusOf(lives)).toBe("running");
        expect(await statusOf(waits.jobId)).toBe("queued");
        const beat = beatOf("worker-0000beef", away, ["t"]);
        for (let time = 0; time < 4; time += 1) {
          await ledger.heartbeat(beat, [{ jobId: lives, attempt: 1 }]);
          await clock.advance(10_000);
        }
        expect(await statusOf(lives)).toBe("running");
        expect(await statusOf(lost)).toBe("failed");
        expect(await statusOf(waits.jobId)).toBe("queued");
      });
    }
  });

  test("F1: a process that starts after an outage, which it has not seen, leaves others that time, too", async () => {
    for (const worker of [true, false]) {
      const { clock, ledger, claimedElsewhere, statusOf } = setUp();
      const away = { ...HERE, host: "away" };
      const lives = await claimedElsewhere("worker-0000beef", away);
      const lost = await claimedElsewhere("worker-0000dead", away);
      const gone = await claimedElsewhere("worker-0001dead", { ...HERE, pid: GONE_PID });
      // The ledger is away: nobody can beat.
      await clock.advance(90_000);
      const tasks = [new HeldTask("other").options];
      await withRig({ clock, ledger, processes, worker, tasks }, async () => {
        await clock.advance(0);
        expect(await statusOf(gone)).toBe("failed");
        expect(await statusOf(lives)).toBe("running");
        await clock.advance(9_000);
        const beat = beatOf("worker-0000beef", away, ["t"]);
        for (let time = 0; time < 3; time += 1) {
          await ledger.heartbeat(beat, [{ jobId: lives, attempt: 1 }]);
          await clock.advance(10_000);
        }
        expect(await statusOf(lives)).toBe("running");
        expect(await statusOf(lost)).toBe("failed");
      });
    }
  });

  test("ends jobs whose task nobody runs, after a while", async () => {
    const { clock, ledger, statusOf } = setUp();
    const jobId = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    const job = { jobId, task: "gone", schemaVersion: 1, payloadJson: encodePayload("gone", "{}") };
    await ledger.submit([job], { maxDepth: 10 });
    await withRig({ clock, ledger, processes, tasks: [new HeldTask("t").options] }, async () => {
      await clock.advance(25_000);
      expect(await statusOf(jobId)).toBe("queued");
      await clock.advance(20_000);
      expect(await statusOf(jobId)).toBe("failed");
    });
  });
});

describe("a task that nobody runs", () => {
  const job = (task: string) => ({
    jobId: "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    task,
    schemaVersion: 1,
    payloadJson: encodePayload(task, "{}"),
  });

  test("is not for an API without a worker to say: workers may still come", async () => {
    const { clock, ledger, statusOf } = setUp();
    await ledger.submit([job("later")], { maxDepth: 10 });
    await withRig({ clock, ledger, processes, worker: false }, async () => {
      await clock.advance(250_000);
      expect(await statusOf(job("later").jobId)).toBe("queued");
    });
  });

  test("is not known by a worker that has only just come, however long the job has waited", async () => {
    const { clock, ledger, statusOf } = setUp();
    await ledger.submit([job("later")], { maxDepth: 10 });
    await clock.advance(120_000);
    const tasks = [new HeldTask("t").options];
    await withRig({ clock, ledger, processes, tasks }, async () => {
      await clock.advance(25_000);
      expect(await statusOf(job("later").jobId)).toBe("queued");
      await clock.advance(20_000);
      expect(await statusOf(job("later").jobId)).toBe("failed");
    });
  });
});

describe("the longest wait", () => {
  test("ends a job that nobody took in time, when its time is up", async () => {
    const slow = new HeldTask("slow");
    const settings = { maxWorkers: 1, asyncTimeoutMs: 400 };
    await withRig({ tasks: [slow.options], settings }, async (rig) => {
      const runs = await submitted(rig, "slow");
      await settled();
      const first = await submitted(rig, "slow");
      await rig.clock.advance(100);
      const second = await submitted(rig, "slow");
      await rig.clock.advance(280);
      expect((await rig.engine.get(first))?.status).toBe("queued");
      await rig.clock.advance(45);
      expect(await rig.engine.get(first)).toMatchObject({
        status: "timed_out",
        errorMessage: "WaitTimeout: worker wait timeout",
      });
      expect((await rig.engine.get(second))?.status).toBe("queued");
      await rig.clock.advance(100);
      expect((await rig.engine.get(second))?.status).toBe("timed_out");
      expect((await rig.engine.get(runs))?.status).toBe("running");
    });
  });

  test("is looked at only while something is queued, and not at all without a limit", async () => {
    for (const asyncTimeoutMs of [400, 0]) {
      const { clock, connection, ledger } = setUp();
      const tasks = [{ name: "t", run: () => null }];
      await withRig({ clock, ledger, tasks, settings: { asyncTimeoutMs } }, async (rig) => {
        await submitted(rig, "t");
        await clock.advance(1_000);
        const before = connection.calls.expire ?? 0;
        await clock.advance(8_000);
        expect(connection.calls.expire ?? 0).toBe(before);
        expect(before === 0).toBe(asyncTimeoutMs === 0);
      });
    }
  });

  test("is looked at when it is due, not at each sweep as well", async () => {
    const { clock, connection, ledger } = setUp();
    const settings = { asyncTimeoutMs: 3_600_000 };
    const options = { clock, ledger, settings, worker: false, tasks: [new HeldTask("t").options] };
    await withRig(options, async (rig) => {
      await submitted(rig, "t");
      await clock.advance(1_000);
      const before = connection.calls.expire ?? 0;
      await clock.advance(600_000);
      expect(connection.calls.expire ?? 0).toBe(before);
    });
  });

  test("of a job that another process submitted ends it, too", async () => {
    const { clock, ledger, statusOf } = setUp();
    const settings = { asyncTimeoutMs: 400 };
    await withRig({ clock, ledger, settings, worker: false }, async () => {
      await clock.advance(5_000);
      const jobId = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
      const payloadJson = encodePayload("t", "{}");
      const runAtMs = clock.nowMs() + 60_000;
      await ledger.submit([{ jobId, task: "t", schemaVersion: 1, payloadJson, runAtMs }], {
        maxDepth: 10,
      });
      await clock.advance(60_300);
      expect(await statusOf(jobId)).toBe("queued");
      await clock.advance(600);
      expect(await statusOf(jobId)).toBe("timed_out");
    });
  });

  test("goes on after the ledger was out of reach", async () => {
    const { clock, connection, ledger, statusOf } = setUp();
    const settings = { asyncTimeoutMs: 400 };
    const options = { clock, ledger, settings, worker: false, tasks: [new HeldTask("t").options] };
    await withRig(options, async (rig) => {
      const jobId = await submitted(rig, "t");
      connection.down = ["expire"];
      await clock.advance(5_000);
      expect(await statusOf(jobId)).toBe("queued");
      connection.down = "none";
      await clock.advance(1_000);
      expect(await statusOf(jobId)).toBe("timed_out");
      await clock.advance(10_000);
      expect(rig.engine.health().ledgerFault).toBeNull();
    });
  });
});

describe("retention", () => {
  const instant = { name: "instant", run: () => null };

  test("keeps the newest async_max_completed, by the next submit at the latest", async () => {
    const settings = { asyncMaxCompleted: 3 };
    await withRig({ tasks: [instant], settings }, async (rig) => {
      const ids: string[] = [];
      for (let n = 0; n < 6; n += 1) {
        ids.push(await submitted(rig, "instant"));
        await rig.clock.advance(20);
      }
      const next = await submitted(rig, "instant");
      await settled();
      const left = await rig.engine.list({ limit: 10 });
      expect(left.jobs.length).toBeLessThanOrEqual(4);
      expect(left.jobs.map(({ jobId }) => jobId)).toContain(next);
      expect(await rig.engine.get(ids[0] ?? "")).toBeNull();
      expect(await rig.engine.get(ids[5] ?? "")).not.toBeNull();
    });
  });

  test("F38: forgets what is older than async_job_ttl, also when nothing happens", async () => {
    const settings = { asyncJobTtlMs: 60_000 };
    await withRig({ tasks: [instant], settings }, async (rig) => {
      const jobId = await submitted(rig, "instant");
      await rig.clock.advance(59_000);
      expect(await rig.engine.get(jobId)).not.toBeNull();
      await rig.clock.advance(12_000);
      expect(await rig.engine.get(jobId)).toBeNull();
    });
  });

  test("F38: sweeps a large table in bounded pieces", async () => {
    const { clock, connection, ledger } = setUp();
    const jobs = Array.from({ length: 2_600 }, (_, n) => ({
      jobId: `01ARZ3NDEKTSV4RRFFQ69G${String(n).padStart(4, "0")}`,
      task: "t",
      schemaVersion: 1,
      payloadJson: "{}",
    }));
    await ledger.submit(jobs, { maxDepth: 10_000 });
    await ledger.cancel(jobs.map(({ jobId }) => jobId));
    const settings = { asyncMaxCompleted: 100 };
    await withRig({ clock, ledger, settings }, async (rig) => {
      await clock.advance(0);
      await settled();
      expect((await rig.engine.counts()).total).toBe(100);
      expect(connection.calls.evict).toBe(6);
    });
  });

  test("F30: stays within the bound while jobs only end and none is submitted", async () => {
    const { clock, connection, ledger } = setUp();
    const jobs = Array.from({ length: 3_000 }, (_, n) => ({
      jobId: `01ARZ3NDEKTSV4RRFFQ69G${String(n).padStart(4, "0")}`,
      task: "instant",
      schemaVersion: 1,
      payloadJson: encodePayload("instant", "{}"),
    }));
    const settings = { asyncMaxCompleted: 100 };
    await withRig({ clock, ledger, settings, tasks: [instant] }, async (rig) => {
      await clock.advance(0);
      await ledger.submit(jobs, { maxDepth: 10_000 });
      await settled(200);
      expect(rig.engine.health().processed).toBe(3_000);
      expect((await rig.engine.counts()).total).toBeLessThan(100 + 1_100);
      expect(connection.calls.evict).toBeLessThan(40);
    });
  });
});
