/** A cancelled handler that goes on: what it holds stays taken, and what it says later is not heard. */
import { expect, test } from "vitest";
import { HeldTask, SETTINGS, submitted, withRig } from "../engine-rig.js";
import { settled } from "../virtual-clock.js";

test("a cancelled job is not over, and its slot not free, before its handler has gone", async () => {
  const slow = new HeldTask("slow");
  await withRig({ tasks: [slow.options], settings: { maxWorkers: 1 } }, async (rig) => {
    const { engine, clock } = rig;
    const [first, second] = [await submitted(rig, "slow"), await submitted(rig, "slow")];
    await settled();
    expect(await engine.cancel(first)).toMatchObject({ kind: "requested" });
    await settled();
    expect(slow.call(0).ctx.signal.aborted).toBe(true);
    await clock.advance(SETTINGS.cancelGraceMs - 1);
    expect(await engine.get(first)).toMatchObject({ status: "running" });
    expect(engine.health()).toMatchObject({ busy: 1, cancelled: 0 });
    expect(slow.calls).toHaveLength(1);
    // It ends by itself, just in time, with a result that nobody wants any more.
    slow.call(0).succeed("too late");
    await settled();
    expect(await engine.get(first)).toMatchObject({ status: "cancelled" });
    expect((await engine.result(first))?.resultJson).toBeNull();
    expect(await engine.get(second)).toMatchObject({ status: "running" });
    expect(engine.health()).toMatchObject({ busy: 1, cancelled: 1, processed: 0 });
    expect(slow.mostRunning).toBe(1);
  });
});

test("one that ignores it for the whole grace is given up: once, and for good", async () => {
  const slow = new HeldTask("slow");
  await withRig({ tasks: [slow.options], settings: { maxWorkers: 1 } }, async (rig) => {
    const { engine, clock } = rig;
    const ids = [await submitted(rig, "slow"), await submitted(rig, "slow")];
    await submitted(rig, "slow");
    await settled();
    await engine.cancel(ids[0] ?? "");
    await clock.advance(SETTINGS.cancelGraceMs);
    expect(await engine.get(ids[0] ?? "")).toMatchObject({ status: "cancelled" });
    expect(slow.calls).toHaveLength(2);
    // Its late end gives no slot back a second time, and ends nobody else's job.
    slow.call(0).fail(new Error("too late"));
    await settled();
    expect(slow.calls).toHaveLength(2);
    expect(await engine.get(ids[0] ?? "")).toMatchObject({
      status: "cancelled",
      errorMessage: null,
    });
    expect(await engine.get(ids[1] ?? "")).toMatchObject({ status: "running" });
    expect(engine.health()).toMatchObject({ busy: 1, cancelled: 1, failed: 0 });
  });
});
