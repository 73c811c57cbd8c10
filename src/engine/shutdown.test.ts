import { describe, expect, test } from "vitest";
import { openMemoryLedger } from "../ledger/memory/memory-ledger.js";
import { Connection, createRig, HeldTask, submitted } from "../../test/engine-rig.js";
import { settled, VirtualClock } from "../../test/virtual-clock.js";

async function running(count: number, maxAttempts = 1) {
  const clock = new VirtualClock();
  const connection = new Connection(openMemoryLedger({ clock }));
  const slow = new HeldTask("slow");
  const rig = createRig({
    clock,
    ledger: connection.ledger,
    tasks: [slow.options],
    settings: { maxWorkers: count },
  });
  await rig.engine.start();
  const ids: string[] = [];
  for (let n = 0; n < count; n += 1) ids.push(await submitted(rig, "slow", { maxAttempts }));
  await settled();
  let over = false;
  const stop = (): Promise<void> => rig.engine.stop().then(() => void (over = true));
  const statuses = async (): Promise<(string | undefined)[]> =>
    (await connection.ledger.get(ids)).map((job) => job?.status);
  return { ...rig, connection, slow, ids, stop, isOver: () => over, statuses };
}

describe("stopping", () => {
  test("F25: an idle engine returns at once, once and for all", async () => {
    const clock = new VirtualClock();
    const rig = createRig({ clock });
    await rig.engine.start();
    await rig.engine.stop();
    await rig.engine.stop();
    expect(clock.pendingTimers).toBe(0);
    expect(await rig.ledger.workers()).toEqual([]);
    expect(await rig.engine.submit({ task: "x", input: 1 })).toEqual({
      kind: "not_ready",
      reason: "shutting down",
    });
  });

  test("works on an engine that was never started, which then can't be", async () => {
    const rig = createRig();
    await rig.engine.stop();
    await expect(rig.engine.start()).rejects.toMatchObject({ code: "not_ready" });
  });

  test("F25, F26: waits for the last job, and records what each became", async () => {
    const { slow, stop, isOver, statuses, clock } = await running(3);
    const stopping = stop();
    await settled();
    expect(slow.calls.map(({ ctx }) => ctx.signal.aborted)).toEqual([true, true, true]);
    slow.call(0).succeed("finished all the same");
    slow.call(1).fail(new Error("aborted"));
    await clock.advance(4_000);
    expect(isOver()).toBe(false);
    expect(await statuses()).toEqual(["succeeded", "cancelled", "running"]);
    slow.call(2).succeed("at last");
    await stopping;
    expect(await statuses()).toEqual(["succeeded", "cancelled", "succeeded"]);
    expect(clock.pendingTimers).toBe(0);
  });

  test("F15, F25: gives deaf handlers up at its deadline, and every row is terminal or queued", async () => {
    const { stop, isOver, statuses, clock, ledger } = await running(2, 2);
    const stopping = stop();
    await clock.advance(4_900);
    expect(isOver()).toBe(false);
    await clock.advance(200);
    await stopping;
    expect(await statuses()).toEqual(["queued", "queued"]);
    expect(await ledger.counts()).toMatchObject({ running: 0, queued: 2 });
    expect(clock.pendingTimers).toBe(0);
  });

  test("F15: a job with no attempt left that is broken off ends as cancelled; a user's cancel always does", async () => {
    const { stop, statuses, clock, engine, ids } = await running(2, 1);
    await engine.cancel(ids[0] ?? "");
    const stopping = stop();
    await clock.advance(6_000);
    await stopping;
    expect(await statuses()).toEqual(["cancelled", "cancelled"]);
  });

  test("F9: beats until the last job has ended, as draining", async () => {
    const { stop, clock, ledger, slow, connection } = await running(1);
    const stopping = stop();
    const before = connection.calls.heartbeat ?? 0;
    await clock.advance(4_000);
    expect(await ledger.workers()).toMatchObject([{ state: "running" }]);
    slow.call(0).ctx.progress({ draining: true });
    await clock.advance(600);
    expect(connection.calls.heartbeat).toBeGreaterThan(before);
    expect(await ledger.workers()).toMatchObject([{ state: "draining" }]);
    slow.call(0).succeed(1);
    await stopping;
    expect(await ledger.workers()).toEqual([]);
  });

  test("F25: does not hang on a ledger that is down", async () => {
    const { stop, clock, slow, connection, statuses } = await running(1);
    connection.down = "all";
    slow.call(0).succeed("never recorded");
    const stopping = stop();
    await clock.advance(5_000 + 4 * 2_000);
    await stopping;
    // Stuck detection finds it.
    connection.down = "none";
    expect(await statuses()).toEqual(["running"]);
  });

  test("during the start leaves nothing claimed", async () => {
    const clock = new VirtualClock();
    const slow = new HeldTask("slow");
    const rig = createRig({ clock, tasks: [slow.options] });
    await submitted(rig, "slow");
    const starting = rig.engine.start();
    const stopping = rig.engine.stop();
    await starting;
    await clock.advance(1_000);
    await stopping;
    expect(await rig.ledger.counts()).toMatchObject({ queued: 1, running: 0 });
    expect(clock.pendingTimers).toBe(0);
  });

  test("a start that failed can be tried again", async () => {
    const clock = new VirtualClock();
    const connection = new Connection(openMemoryLedger({ clock }));
    const slow = new HeldTask("slow");
    const rig = createRig({ clock, ledger: connection.ledger, tasks: [slow.options] });
    await submitted(rig, "slow");
    connection.down = "all";
    const failing = rig.engine.start();
    const alike = rig.engine.start();
    await expect(failing).rejects.toMatchObject({ code: "ledger_unavailable" });
    await expect(alike).rejects.toMatchObject({ code: "ledger_unavailable" });
    expect(connection.calls.heartbeat).toBe(1);
    connection.down = "none";
    await rig.engine.start();
    await settled();
    expect(rig.engine.health().state).toBe("running");
    expect(slow.calls.length).toBe(1);
    slow.call(0).succeed(1);
    await settled();
    await rig.engine.stop();
    expect(await rig.ledger.workers()).toEqual([]);
    expect(clock.pendingTimers).toBe(0);
  });

  test("a start that fails says why, and can be stopped", async () => {
    const clock = new VirtualClock();
    const connection = new Connection(openMemoryLedger({ clock }));
    connection.down = "all";
    const rig = createRig({ clock, ledger: connection.ledger });
    await expect(rig.engine.start()).rejects.toMatchObject({ code: "ledger_unavailable" });
    await rig.engine.stop();
    expect(clock.pendingTimers).toBe(0);
  });
});
