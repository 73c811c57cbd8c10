import { describe, expect, test } from "vitest";
import { Discard, Retry } from "../task/errors.js";
import { createRig, HeldTask, stopped, submitted, withRig } from "../../test/engine-rig.js";
import { settled } from "../../test/virtual-clock.js";

describe("a job", () => {
  test("runs as soon as it is submitted and keeps its result", async () => {
    const echo = { name: "echo", run: (input: unknown) => ({ echoed: input }) };
    await withRig({ tasks: [echo] }, async (rig) => {
      const jobId = await submitted(rig, "echo", {}, { a: 1 });
      await settled();
      const found = await rig.engine.result(jobId);
      expect(found?.job).toMatchObject({ status: "succeeded", attempt: 1, errorMessage: null });
      expect(found?.resultJson).toBe('{"echoed":{"a":1}}');
      // The job may well have started before its submit was answered.
      expect([...rig.seen].sort()).toEqual([
        "accepted echo",
        "ended echo succeeded",
        "started echo",
      ]);
      expect(rig.engine.health()).toMatchObject({ processed: 1, failed: 0, cancelled: 0, busy: 0 });
    });
  });

  test("is logged in one line when it ends", async () => {
    const slow = new HeldTask("slow");
    await withRig({ tasks: [slow.options] }, async (rig) => {
      const jobId = await submitted(rig, "slow");
      await rig.clock.advance(40);
      slow.call(0).fail(new TypeError("no model"));
      await settled();
      const lines = rig.logs.filter(({ message }) => message === "job ended");
      expect(lines).toEqual([
        {
          level: "info",
          message: "job ended",
          fields: {
            job_id: jobId,
            task: "slow",
            status: "failed",
            attempt: 1,
            run_ms: 40,
            wait_ms: 0,
            error: "TypeError: no model",
          },
        },
      ]);
    });
  });

  test("never runs beside more than the slots allow", async () => {
    const slow = new HeldTask("slow");
    await withRig({ tasks: [slow.options], settings: { maxWorkers: 3 } }, async (rig) => {
      for (let n = 0; n < 10; n += 1) await submitted(rig, "slow");
      await settled();
      expect(slow.running).toBe(3);
      expect(await rig.engine.counts()).toMatchObject({ queued: 7, running: 3 });
      for (let n = 0; n < 10; n += 1) {
        await rig.clock.advance(20);
        slow.call(n).succeed(n);
        await settled();
        const { running } = await rig.engine.counts();
        expect(running).toBe(Math.min(3, 9 - n));
      }
      expect(slow.mostRunning).toBe(3);
      expect(await rig.engine.counts()).toMatchObject({ queued: 0, running: 0, total: 10 });
    });
  });

  test("that is refused leaves nothing behind", async () => {
    const slow = new HeldTask("slow");
    await withRig({ tasks: [slow.options], settings: { asyncMaxQueue: 1 } }, async (rig) => {
      await submitted(rig, "slow");
      expect(await rig.engine.submit({ task: "slow", input: {} })).toEqual({
        kind: "full",
        limit: 1,
        retryAfterS: 1,
      });
      expect(await rig.engine.submit({ task: "no", input: {} })).toEqual({
        kind: "unknown_task",
        task: "no",
        known: ["slow"],
      });
      expect(await rig.engine.submit({ task: "slow", input: { n: 1n } })).toMatchObject({
        kind: "invalid",
        issues: [{ path: "", message: "input.n is a BigInt" }],
      });
      expect(
        await rig.engine.submit({ task: "slow", input: {}, priority: 0.5, maxAttempts: 0 }),
      ).toMatchObject({ kind: "invalid", issues: [{ path: "priority" }, { path: "maxAttempts" }] });
      expect((await rig.engine.counts()).total).toBe(1);
    });
  });

  test.each([
    [{ priority: 1_001 }, "priority: must be an integer from -1000 to 1000"],
    [{ maxAttempts: 101 }, "maxAttempts: must be an integer from 1 to 100"],
    [{ delayMs: 0.5 }, "delayMs: must be an integer from 0 to 31536000000"],
    [{ timeoutMs: 0 }, "timeoutMs: must be an integer from 1 to 2592000000"],
    [{ timeoutMs: 1.5 }, "timeoutMs: must be an integer from 1 to 2592000000"],
    [{ timeoutMs: 31 * 86_400_000 }, "timeoutMs: must be an integer from 1 to 2592000000"],
  ])("with the option %o is refused", async (options, problem) => {
    const rig = createRig({ tasks: [new HeldTask("slow").options] });
    const result = await rig.engine.submit({ task: "slow", input: {}, ...options });
    const issues = result.kind === "invalid" ? result.issues : [];
    expect(issues.map(({ path, message }) => `${path}: ${message}`)).toEqual([problem]);
    expect((await rig.engine.counts()).total).toBe(0);
  });

  test("is admitted by nothing when the bound is zero or less", async () => {
    const slow = new HeldTask("slow");
    await withRig({ tasks: [slow.options], settings: { asyncMaxQueue: 0 } }, async (rig) => {
      const result = await rig.engine.submit({ task: "slow", input: {} });
      expect(result).toMatchObject({ kind: "full", limit: 0 });
      expect(rig.seen).toEqual(["refused slow"]);
    });
  });

  test("is not counted as recorded while its caller may yet roll it back", async () => {
    const slow = new HeldTask("slow");
    const options = { tasks: [slow.options], settings: { asyncMaxQueue: 3 }, worker: false };
    await withRig(options, async ({ engine, ledger, seen }) => {
      const transaction = { submit: ledger.submit.bind(ledger) };
      const request = { task: "slow", input: 1 };
      expect((await engine.submit(request, transaction)).kind).toBe("accepted");
      expect((await engine.submitMany([request], transaction)).kind).toBe("accepted");
      expect(seen).toEqual([]);
      // Outside of one it is recorded for good; and a refusal is one anywhere.
      await engine.submit(request);
      await engine.submit(request, transaction);
      expect(seen).toEqual(["accepted slow", "refused slow"]);
    });
  });

  test("with a delay starts when it is due", async () => {
    const slow = new HeldTask("slow");
    await withRig({ tasks: [slow.options] }, async (rig) => {
      await rig.engine.submit({ task: "slow", input: {}, delayMs: 5_000 });
      await rig.clock.advance(4_900);
      expect(slow.calls.length).toBe(0);
      await rig.clock.advance(1_200);
      expect(slow.calls.length).toBe(1);
    });
  });

  test("reports how far it is, also right before its end", async () => {
    const slow = new HeldTask("slow");
    await withRig({ tasks: [slow.options] }, async (rig) => {
      const jobId = await submitted(rig, "slow");
      await settled();
      slow.call(0).ctx.progress({ done: 1 });
      await rig.clock.advance(1_000);
      expect((await rig.engine.get(jobId))?.progressJson).toBe('{"done":1}');
      slow.call(0).ctx.progress({ done: 2 });
      slow.call(0).succeed(null);
      await settled();
      const job = await rig.engine.get(jobId);
      expect(job).toMatchObject({ status: "succeeded", progressJson: '{"done":2}' });
    });
  });
});

describe("a job that fails", () => {
  test("is tried again with growing pauses while attempts are left", async () => {
    const slow = new HeldTask("slow");
    await withRig({ tasks: [slow.options] }, async (rig) => {
      const jobId = await submitted(rig, "slow", { maxAttempts: 3 });
      await settled();
      slow.call(0).fail(new Error("first"));
      await settled();
      expect(await rig.engine.get(jobId)).toMatchObject({
        status: "queued",
        errorMessage: "Error: first",
      });
      await rig.clock.advance(3_000);
      slow.call(1).fail(new Error("second"));
      await rig.clock.advance(4_000);
      expect(slow.call(2).ctx.attempt).toBe(3);
      slow.call(2).fail(new Error("third"));
      await settled();
      expect(await rig.engine.get(jobId)).toMatchObject({
        status: "failed",
        attempt: 3,
        errorMessage: "Error: third",
      });
      expect(rig.engine.health().failed).toBe(1);
      expect(rig.seen.filter((line) => line.startsWith("ended"))).toEqual([
        "ended slow retried",
        "ended slow retried",
        "ended slow failed",
      ]);
    });
  });

  test("is tried again when its handler says, or not at all", async () => {
    const slow = new HeldTask("slow");
    await withRig({ tasks: [slow.options] }, async (rig) => {
      const later = await submitted(rig, "slow", { maxAttempts: 2 });
      const never = await submitted(rig, "slow", { maxAttempts: 2 });
      await settled();
      slow.call(0).fail(new Retry("busy", { afterMs: 60_000 }));
      slow.call(1).fail(new Discard("no such page"));
      await settled();
      expect(await rig.engine.get(never)).toMatchObject({ status: "failed", attempt: 1 });
      await rig.clock.advance(59_000);
      expect((await rig.engine.get(later))?.status).toBe("queued");
      await rig.clock.advance(2_100);
      expect((await rig.engine.get(later))?.status).toBe("running");
    });
  });

  test.each([
    ["a string", "plain"],
    ["null", null],
    ["undefined", undefined],
  ])("F18: by throwing %s still ends, with a message", async (_, thrown) => {
    const slow = new HeldTask("slow");
    await withRig({ tasks: [slow.options] }, async (rig) => {
      const jobId = await submitted(rig, "slow");
      await settled();
      slow.call(0).fail(thrown);
      await settled();
      const job = await rig.engine.get(jobId);
      expect(job?.status).toBe("failed");
      expect(job?.errorMessage).toMatch(/^Error: ./);
    });
  });
});

describe("time limits", () => {
  test("of a job or its task are held to the operator's", async () => {
    const slow = new HeldTask("slow", { timeout: 2_000 });
    const settings = { maxWorkers: 3, modelRunTimeoutMs: 800 };
    await withRig({ tasks: [slow.options], settings }, async (rig) => {
      const longer = await submitted(rig, "slow", { timeoutMs: 60_000 });
      const tasks = await submitted(rig, "slow");
      const shorter = await submitted(rig, "slow", { timeoutMs: 500 });
      await rig.clock.advance(790);
      const aborted = () => slow.calls.map(({ ctx }) => ctx.signal.aborted);
      expect(aborted()).toEqual([false, false, true]);
      await rig.clock.advance(20);
      expect(aborted()).toEqual([true, true, true]);
      for (const call of slow.calls) call.fail(new Error("aborted"));
      await settled();
      for (const [id, limitMs] of [
        [longer, 800] as const,
        [tasks, 800] as const,
        [shorter, 500] as const,
      ])
        expect(await rig.engine.get(id)).toMatchObject({
          status: "timed_out",
          errorMessage: `TimeLimit: exceeded ${String(limitMs)} ms`,
        });
    });
  });

  test("end a job that goes on, with its own limit before the task's", async () => {
    const slow = new HeldTask("slow", { timeout: 2_000 });
    await withRig({ tasks: [slow.options] }, async (rig) => {
      const own = await submitted(rig, "slow", { timeoutMs: 500 });
      const tasks = await submitted(rig, "slow");
      await rig.clock.advance(500);
      expect(slow.call(0).ctx.signal.aborted).toBe(true);
      slow.call(0).succeed("late");
      await settled();
      expect(await rig.engine.get(own)).toMatchObject({
        status: "timed_out",
        errorMessage: "TimeLimit: exceeded 500 ms",
      });
      await rig.clock.advance(1_400);
      expect(slow.call(1).ctx.signal.aborted).toBe(false);
      await rig.clock.advance(200);
      slow.call(1).fail(new Error("aborted"));
      await settled();
      expect(await rig.engine.get(tasks)).toMatchObject({
        status: "timed_out",
        errorMessage: "TimeLimit: exceeded 2000 ms",
      });
    });
  });

  test("F17: a handler that never settles gives its slot back after limit and grace", async () => {
    const deaf = new HeldTask("deaf");
    await withRig({ tasks: [deaf.options], settings: { maxWorkers: 1 } }, async (rig) => {
      const first = await submitted(rig, "deaf", { timeoutMs: 500 });
      const second = await submitted(rig, "deaf");
      await rig.clock.advance(1_400);
      // F21: over the limit, but the handler still holds the machine.
      expect(await rig.engine.get(first)).toMatchObject({ status: "running" });
      expect(deaf.calls.length).toBe(1);
      await rig.clock.advance(200);
      expect(await rig.engine.get(first)).toMatchObject({ status: "timed_out" });
      expect(await rig.engine.get(second)).toMatchObject({ status: "running" });
      // The late end of the first changes nothing, and gives no slot back a second time (F7).
      deaf.call(0).succeed("very late");
      await submitted(rig, "deaf");
      await settled();
      expect(rig.engine.health().busy).toBe(1);
      expect(deaf.calls.length).toBe(2);
      expect(await rig.engine.get(first)).toMatchObject({ status: "timed_out" });
    });
  });
});

describe("cancelling", () => {
  test("ends a waiting job at once, and one that runs when its handler has gone", async () => {
    const slow = new HeldTask("slow");
    await withRig({ tasks: [slow.options], settings: { maxWorkers: 1 } }, async (rig) => {
      const running = await submitted(rig, "slow");
      const waiting = await submitted(rig, "slow");
      await settled();
      // F20: all slots are full.
      expect(await rig.engine.cancel(waiting)).toMatchObject({ kind: "cancelled" });
      expect(await rig.engine.cancel(running)).toMatchObject({ kind: "requested" });
      await settled();
      expect(slow.call(0).ctx.signal.aborted).toBe(true);
      expect((await rig.engine.get(running))?.status).toBe("running");
      slow.call(0).succeed("done all the same");
      await settled();
      const found = await rig.engine.result(running);
      expect(found).toMatchObject({ job: { status: "cancelled", errorMessage: null } });
      expect(found?.resultJson).toBeNull();
      expect(rig.engine.health()).toMatchObject({ processed: 0, cancelled: 1, failed: 0 });
      expect(await rig.engine.cancel(running)).toMatchObject({ kind: "terminal" });
      expect(await rig.engine.cancel("01ARZ3NDEKTSV4RRFFQ69G5FAV")).toEqual({ kind: "unknown" });
    });
  });

  test("gives up a deaf handler after the grace period", async () => {
    const deaf = new HeldTask("deaf");
    await withRig({ tasks: [deaf.options] }, async (rig) => {
      const jobId = await submitted(rig, "deaf", { maxAttempts: 5 });
      await settled();
      await rig.engine.cancel(jobId);
      await rig.clock.advance(990);
      expect((await rig.engine.get(jobId))?.status).toBe("running");
      await rig.clock.advance(20);
      expect((await rig.engine.get(jobId))?.status).toBe("cancelled");
      expect(rig.engine.health().busy).toBe(0);
    });
  });

  test("F20: works for a failed attempt that waits for its next one", async () => {
    const slow = new HeldTask("slow");
    await withRig({ tasks: [slow.options] }, async (rig) => {
      const jobId = await submitted(rig, "slow", { maxAttempts: 2 });
      await settled();
      slow.call(0).fail(new Error("x"));
      await settled();
      expect(await rig.engine.cancel(jobId)).toMatchObject({ kind: "cancelled" });
      await rig.clock.advance(5_000);
      expect(slow.calls.length).toBe(1);
    });
  });
});

describe("readiness and health", () => {
  test("follow the life of the engine", async () => {
    const rig = createRig();
    expect(await rig.engine.ready()).toEqual({ ready: false, reason: "starting" });
    expect(rig.engine.health().state).toBe("starting");
    await rig.engine.start();
    expect(await rig.engine.ready()).toEqual({ ready: true, reason: null });
    expect(rig.engine.health()).toMatchObject({
      state: "running",
      lastHeartbeatMs: rig.clock.nowMs(),
      ledgerFault: null,
    });
    expect(rig.engine.health().workerId).toMatch(/^worker-[0-9a-f]{8}$/);
    await stopped(rig);
    expect(await rig.engine.ready()).toEqual({ ready: false, reason: "shutting down" });
    expect(rig.engine.health().state).toBe("stopped");
  });

  test("of a process without a worker is idle, and it runs synchronous requests only", async () => {
    const echo = { name: "echo", run: (input: unknown) => input };
    await withRig({ tasks: [echo], worker: false }, async (rig) => {
      expect(rig.engine.health()).toMatchObject({ state: "idle", workerId: null });
      const jobId = await submitted(rig, "echo");
      await rig.clock.advance(5_000);
      expect((await rig.engine.get(jobId))?.status).toBe("queued");
      expect(await rig.engine.run({ task: "echo", input: 7 })).toEqual({
        kind: "done",
        resultJson: "7",
      });
      expect(await rig.ledger.workers()).toEqual([]);
    });
  });
});
