import { describe, expect, test } from "vitest";
import { createRig, HeldTask, stopped, submitted, withRig } from "../../test/engine-rig.js";
import { settled } from "../../test/virtual-clock.js";

describe("a synchronous request", () => {
  test("is answered with the result, or with what the handler threw", async () => {
    const slow = new HeldTask("slow");
    await withRig({ tasks: [slow.options] }, async ({ engine, seen }) => {
      const done = engine.run({ task: "slow", input: 1 });
      const failed = engine.run({ task: "slow", input: 2 });
      await settled();
      expect(slow.call(0).ctx).toMatchObject({ jobId: null, attempt: 1 });
      slow.call(0).succeed({ ok: true });
      slow.call(1).fail(new RangeError("no"));
      expect(await done).toEqual({ kind: "done", resultJson: '{"ok":true}' });
      expect(await failed).toEqual({ kind: "failed", errorMessage: "RangeError: no" });
      expect(await engine.run({ task: "none", input: 1 })).toMatchObject({ kind: "unknown_task" });
      expect((await engine.counts()).total).toBe(0);
      expect([...seen].sort()).toEqual(["request ended slow done", "request ended slow failed"]);
    });
  });

  test("shares the slots with jobs, first in, first out", async () => {
    const slow = new HeldTask("slow");
    await withRig({ tasks: [slow.options], settings: { maxWorkers: 1 } }, async (rig) => {
      const first = rig.engine.run({ task: "slow", input: "r1" });
      await settled();
      await submitted(rig, "slow", {}, "j1");
      await submitted(rig, "slow", {}, "j2");
      await settled();
      const second = rig.engine.run({ task: "slow", input: "r2" });
      const third = rig.engine.run({ task: "slow", input: "r3" });
      await settled();
      for (let n = 0; n < 5; n += 1) {
        slow.call(n).succeed(n);
        await rig.clock.advance(5);
      }
      await Promise.all([first, second, third]);
      const order = slow.calls.map(({ input }) => input);
      expect(order.slice(0, 2)).toEqual(["r1", "j1"]);
      // One place in line for the next job, queued when the first got its slot: between or after r2 and r3.
      expect(order.slice(2).sort()).toEqual(["j2", "r2", "r3"]);
      expect(order.filter((name) => String(name).startsWith("r"))).toEqual(["r1", "r2", "r3"]);
      expect(slow.mostRunning).toBe(1);
    });
  });

  test("does not starve jobs, however many stand in line", async () => {
    const slow = new HeldTask("slow");
    await withRig({ tasks: [slow.options], settings: { maxWorkers: 1 } }, async (rig) => {
      const requests = [0, 1, 2, 3].map((n) => rig.engine.run({ task: "slow", input: n }));
      await settled();
      await submitted(rig, "slow", {}, "job");
      await settled();
      requests.push(rig.engine.run({ task: "slow", input: 4 }));
      for (let n = 0; n < 6; n += 1) {
        slow.call(n).succeed(n);
        await settled();
      }
      await Promise.all(requests);
      expect(slow.calls.map(({ input }) => input)).toEqual([0, 1, 2, 3, "job", 4]);
    });
  });

  test("is refused when the line is full, with a time to come back", async () => {
    const slow = new HeldTask("slow");
    const settings = { maxWorkers: 1, maxQueueDepth: 1 };
    await withRig({ tasks: [slow.options], settings }, async (rig) => {
      const first = rig.engine.run({ task: "slow", input: 1 });
      await rig.clock.advance(30_000);
      slow.call(0).succeed(1);
      await first;
      const running = rig.engine.run({ task: "slow", input: 2 });
      const waiting = rig.engine.run({ task: "slow", input: 3 });
      await settled();
      expect(rig.engine.health()).toMatchObject({ busy: 1, waiting: 1 });
      expect(await rig.engine.run({ task: "slow", input: 4 })).toEqual({
        kind: "full",
        limit: 1,
        retryAfterS: 60,
      });
      expect(rig.seen.at(-1)).toBe("request refused slow");
      slow.call(1).succeed(1);
      await settled();
      slow.call(2).succeed(1);
      await Promise.all([running, waiting]);
    });
  });

  test("has one limit for its wait and its run, and is answered when it is reached", async () => {
    const slow = new HeldTask("slow", { timeout: 1_000 });
    const settings = { maxWorkers: 1, modelRunTimeoutMs: 5_000 };
    await withRig({ tasks: [slow.options], settings }, async (rig) => {
      const running = rig.engine.run({ task: "slow", input: 1 });
      await rig.clock.advance(500);
      const waiting = rig.engine.run({ task: "slow", input: 2 });
      await rig.clock.advance(500);
      expect(await running).toEqual({ kind: "timeout", limitMs: 1_000 });
      expect(slow.call(0).ctx.signal.aborted).toBe(true);
      // F21: the slot is taken until the handler has gone.
      expect(rig.engine.health()).toMatchObject({ busy: 1, waiting: 1 });
      await rig.clock.advance(500);
      expect(await waiting).toEqual({ kind: "timeout", limitMs: 1_000 });
      expect(slow.calls.length).toBe(1);
      expect(rig.engine.health()).toMatchObject({ busy: 1, waiting: 0 });
      // F17: it never goes by itself.
      await rig.clock.advance(600);
      expect(rig.engine.health().busy).toBe(0);
    });
  });

  test("ends when its caller leaves, in line or at work", async () => {
    const slow = new HeldTask("slow");
    await withRig({ tasks: [slow.options], settings: { maxWorkers: 1 } }, async (rig) => {
      const callers = [new AbortController(), new AbortController(), new AbortController()];
      const signalOf = (n: number): AbortSignal => callers[n]?.signal ?? AbortSignal.abort();
      const running = rig.engine.run({ task: "slow", input: 1, signal: signalOf(0) });
      const waiting = rig.engine.run({ task: "slow", input: 2, signal: signalOf(1) });
      await settled();
      callers[1]?.abort();
      expect(await waiting).toEqual({ kind: "cancelled" });
      callers[0]?.abort();
      expect(await running).toEqual({ kind: "cancelled" });
      expect(slow.call(0).ctx.signal.aborted).toBe(true);
      expect(rig.engine.health().busy).toBe(1);
      slow.call(0).fail(new Error("aborted"));
      await settled();
      expect(rig.engine.health().busy).toBe(0);
      const gone = AbortSignal.abort();
      expect(await rig.engine.run({ task: "slow", input: 3, signal: gone })).toEqual({
        kind: "cancelled",
      });
      expect(slow.calls.length).toBe(1);
    });
  });

  test("at a shutdown: what waits is refused, what finishes is answered", async () => {
    const slow = new HeldTask("slow");
    const rig = createRig({ tasks: [slow.options], settings: { maxWorkers: 2 } });
    await rig.engine.start();
    const finishes = rig.engine.run({ task: "slow", input: 1 });
    const breaksOff = rig.engine.run({ task: "slow", input: 2 });
    const waits = rig.engine.run({ task: "slow", input: 3 });
    await settled();
    const stopping = rig.engine.stop();
    await settled();
    const refused = { kind: "not_ready", reason: "shutting down" };
    expect(await waits).toEqual(refused);
    expect(await rig.engine.run({ task: "slow", input: 4 })).toEqual(refused);
    expect(slow.call(0).ctx.signal.aborted).toBe(true);
    slow.call(0).succeed(1);
    slow.call(1).fail(new Error("aborted"));
    expect(await finishes).toEqual({ kind: "done", resultJson: "1" });
    expect(await breaksOff).toEqual(refused);
    await stopping;
    await stopped(rig);
    expect(slow.running).toBe(0);
  });
});
