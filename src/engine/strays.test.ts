import { describe, expect, test } from "vitest";
import { Connection, HeldTask, submitted, withRig } from "../../test/engine-rig.js";
import { VirtualClock } from "../../test/virtual-clock.js";
import { LedgerError } from "../job/errors.js";
import type { Ledger } from "../ledger/ledger.js";
import { openMemoryLedger } from "../ledger/memory/memory-ledger.js";

/** A ledger whose claims are recorded, and not answered while `mute`. */
function muted() {
  const clock = new VirtualClock();
  const connection = new Connection(openMemoryLedger({ clock }));
  const payloads = new Map<string, string>();
  const line = { mute: false, connection };
  const ledger: Ledger = {
    ...connection.ledger,
    async claim(request) {
      const claimed = await connection.ledger.claim(request);
      // A ledger on disk keeps them.
      for (const { job, payloadJson } of claimed) payloads.set(job.jobId, payloadJson);
      if (line.mute) throw new LedgerError("ledger_unavailable", "the connection broke");
      return claimed;
    },
    payload: async (jobId) => payloads.get(jobId) ?? null,
  };
  return { clock, ledger, line };
}

describe("a claim whose answer was lost", () => {
  test("its jobs run as soon as the ledger answers, in the attempt that it counted", async () => {
    const { clock, ledger, line } = muted();
    const task = new HeldTask("task");
    await withRig({ clock, ledger, tasks: [task.options] }, async (rig) => {
      line.mute = true;
      const jobId = await submitted(rig, "task", { maxAttempts: 1 }, { n: 7 });
      await clock.advance(500);
      line.mute = false;
      await clock.advance(2_000);
      expect(task.call(0).input).toEqual({ n: 7 });
      expect(task.call(0).ctx.attempt).toBe(1);
      task.call(0).succeed("done");
      await clock.advance(100);
      expect(await rig.engine.get(jobId)).toMatchObject({ status: "succeeded", attempt: 1 });
    });
  });

  test("a job that was to be cancelled meanwhile ends as cancelled, and never runs", async () => {
    const { clock, ledger, line } = muted();
    const task = new HeldTask("task");
    await withRig({ clock, ledger, tasks: [task.options] }, async (rig) => {
      line.mute = true;
      const jobId = await submitted(rig, "task");
      await clock.advance(500);
      expect(await rig.engine.cancel(jobId)).toMatchObject({ kind: "requested" });
      line.mute = false;
      await clock.advance(2_000);
      expect(task.calls).toHaveLength(0);
      expect(await rig.engine.get(jobId)).toMatchObject({ status: "cancelled" });
    });
  });

  test("its jobs wait for slots as others do: what gets none goes back, its attempt not counted", async () => {
    const { clock, ledger, line } = muted();
    const task = new HeldTask("task");
    const settings = { maxWorkers: 2 };
    await withRig({ clock, ledger, tasks: [task.options], settings }, async (rig) => {
      line.mute = true;
      for (let n = 0; n < 4; n += 1) await submitted(rig, "task", { maxAttempts: 1 }, { n });
      await clock.advance(3_500);
      line.mute = false;
      await clock.advance(2_000);
      expect(task.running).toBe(2);
      expect(await rig.engine.counts()).toMatchObject({ queued: 2, running: 2 });
      for (let call = 0; call < 4; call += 1) {
        task.call(call).succeed("done");
        await clock.advance(2_000);
      }
      expect(await rig.engine.counts()).toMatchObject({ queued: 0, running: 0 });
      expect(task.calls.map(({ ctx }) => ctx.attempt)).toEqual([1, 1, 1, 1]);
      expect(task.mostRunning).toBe(2);
    });
  });

  test("one that is recorded later is found also while all slots are taken; what runs is left alone", async () => {
    const { clock, ledger, line } = muted();
    const task = new HeldTask("task");
    const settings = { maxWorkers: 1 };
    await withRig({ clock, ledger, tasks: [task.options], settings }, async (rig) => {
      const { workerId } = rig.engine.health();
      line.connection.down = ["claim"];
      await clock.advance(1_500);
      line.connection.down = "none";
      const first = await submitted(rig, "task", { maxAttempts: 1 });
      await clock.advance(1_500);
      const second = await submitted(rig, "task", { maxAttempts: 1 });
      // As a server does that had let it wait for a lock.
      await ledger.claim({ workerId: workerId ?? "", tasks: ["task"], limit: 1 });
      await clock.advance(10_000);
      expect(await rig.engine.get(first)).toMatchObject({ status: "running", attempt: 1 });
      expect(await rig.engine.get(second)).toMatchObject({ status: "queued", attempt: 0 });
      expect(task.calls).toHaveLength(1);
    });
  });

  test("a job that ends while the ledger is asked is not taken for one", async () => {
    const { clock, ledger, line } = muted();
    const task = new HeldTask("task");
    let answerList = (): void => undefined;
    const slow: Ledger = {
      ...ledger,
      async list(query) {
        const page = await ledger.list(query);
        await new Promise<void>((resolve) => (answerList = resolve));
        return page;
      },
    };
    await withRig({ clock, ledger: slow, tasks: [task.options] }, async (rig) => {
      const first = await submitted(rig, "task");
      await clock.advance(10);
      line.connection.down = ["claim"];
      await clock.advance(1_500);
      line.connection.down = "none";
      await clock.advance(1_500);
      // The ledger has said that it runs, and the answer is on its way.
      task.call(0).succeed("done");
      await clock.advance(100);
      expect(await rig.engine.get(first)).toMatchObject({ status: "succeeded" });
      answerList();
      await clock.advance(1_000);
      expect(task.calls).toHaveLength(1);
    });
  });

  test("the ledger is not asked for ever", async () => {
    const { clock, ledger, line } = muted();
    const task = new HeldTask("task");
    await withRig({ clock, ledger, tasks: [task.options] }, async () => {
      await clock.advance(10_000);
      expect(line.connection.calls.list ?? 0).toBe(0);
      line.connection.down = ["claim"];
      await clock.advance(1_500);
      line.connection.down = "none";
      await clock.advance(320_000);
      const asked = line.connection.calls.list ?? 0;
      expect(asked).toBeGreaterThan(30);
      expect(asked).toBeLessThan(70);
      await clock.advance(60_000);
      expect(line.connection.calls.list).toBe(asked);
    });
  });

  test("while no slot is free nothing is claimed, and the fault is not taken for mended", async () => {
    const { clock, ledger, line } = muted();
    const task = new HeldTask("task");
    const settings = { maxWorkers: 2 };
    await withRig({ clock, ledger, tasks: [task.options], settings }, async (rig) => {
      await submitted(rig, "task");
      await clock.advance(100);
      line.connection.down = ["claim", "list"];
      await submitted(rig, "task");
      await clock.advance(100);
      const run = rig.engine.run({ task: "task", input: 1 });
      await clock.advance(100);
      const { claim } = line.connection.calls;
      const { list = 0 } = line.connection.calls;
      await clock.advance(20_000);
      expect(line.connection.calls.list).toBeGreaterThan(list);
      expect(line.connection.calls.claim).toBe(claim);
      expect(await rig.engine.ready()).toMatchObject({ ready: false });
      line.connection.down = "none";
      for (const call of task.calls) call.succeed("done");
      await run;
      await clock.advance(10_000);
      expect(task.calls).toHaveLength(3);
      task.call(2).succeed("done");
    });
  });
});
