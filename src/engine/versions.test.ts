import { describe, expect, test } from "vitest";
import { encodePayload, UNSTATED_VERSION } from "../job/payload.js";
import { openMemoryLedger } from "../ledger/memory/memory-ledger.js";
import type { TaskOptions } from "../task/task.js";
import { createRig, stopped, submitted, withRig } from "../../test/engine-rig.js";
import { settled, VirtualClock } from "../../test/virtual-clock.js";

const first = { name: "scale", run: (input: unknown) => input };
const second = {
  ...first,
  version: 2,
  upgrade: { 1: ({ width }: { readonly width: number }) => ({ size: [width, width] }) },
} satisfies TaskOptions;

describe("a task whose input has changed", () => {
  test("runs jobs that were recorded before the change", async () => {
    const clock = new VirtualClock();
    const ledger = openMemoryLedger({ clock });
    const before = createRig({ clock, ledger, tasks: [first], worker: false });
    const old = await submitted(before, "scale", {}, { width: 3 });
    expect(await before.engine.get(old)).toMatchObject({ schemaVersion: 1 });
    await stopped(before);
    // Both engines draw the same ids in the same millisecond.
    await clock.advance(1);
    await withRig({ clock, ledger, tasks: [second] }, async (rig) => {
      const present = await submitted(rig, "scale", {}, { size: [4, 5] });
      await settled();
      expect((await rig.engine.result(old))?.resultJson).toBe('{"size":[3,3]}');
      const found = await rig.engine.result(present);
      expect(found).toMatchObject({ job: { schemaVersion: 2 }, resultJson: '{"size":[4,5]}' });
    });
  });

  test("fails what a newer worker recorded, once and in words", async () => {
    const clock = new VirtualClock();
    const ledger = openMemoryLedger({ clock });
    const newer = createRig({ clock, ledger, tasks: [second], worker: false });
    const jobId = await submitted(newer, "scale", { maxAttempts: 3 }, { size: [4, 5] });
    await stopped(newer);
    await withRig({ clock, ledger, tasks: [first] }, async (rig) => {
      await settled();
      expect(await rig.engine.get(jobId)).toMatchObject({
        status: "failed",
        attempt: 1,
        errorMessage:
          "UnreadablePayload: task \"scale\": the input's version 2 is newer than this worker's (1): upgrade the worker",
      });
    });
  });

  test("takes an input of no stated version as it is: whoever recorded it did not know the task", async () => {
    const clock = new VirtualClock();
    const ledger = openMemoryLedger({ clock });
    await withRig({ clock, ledger, tasks: [second] }, async (rig) => {
      const payloadJson = encodePayload("scale", '{"size":[6,7]}', UNSTATED_VERSION);
      const jobId = "0".repeat(26);
      await ledger.submit(
        [{ jobId, task: "scale", schemaVersion: UNSTATED_VERSION, payloadJson }],
        { maxDepth: 10 },
      );
      await settled();
      expect((await rig.engine.result(jobId))?.resultJson).toBe('{"size":[6,7]}');
    });
  });

  test("takes the present version from synchronous requests", async () => {
    await withRig({ tasks: [second] }, async ({ engine }) => {
      expect(await engine.run({ task: "scale", input: { size: [1, 2] } })).toEqual({
        kind: "done",
        resultJson: '{"size":[1,2]}',
      });
    });
  });
});
