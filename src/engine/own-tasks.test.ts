import { describe, expect, test } from "vitest";
import { z } from "zod";
import { encodePlanPayload, PLAN_TASKS, type PlanInput } from "../job/payload.js";
import type { NewJob, Phase } from "../job/job.js";
import type { RegisteredTask } from "../task/registry.js";
import type { TaskContext } from "../task/task.js";
import {
  createRig,
  HeldTask,
  stopped,
  submitted,
  withRig,
  type Rig,
} from "../../test/engine-rig.js";
import { accept, nextJobId, present, see } from "../../test/ledger/acts.js";
import { settled } from "../../test/virtual-clock.js";
import { nestedRun } from "./nested-run.js";
import { createInlineRunner } from "./runner/inline-runner.js";

const PLAN_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

function ownTask(
  phase: Phase,
  run: (input: unknown, ctx: TaskContext) => unknown,
  graceMs: number | null = null,
): RegisteredTask {
  return {
    name: PLAN_TASKS[phase],
    description: null,
    isolation: "inline",
    timeoutMs: null,
    graceMs,
    maxAttempts: 1,
    version: 1,
    file: null,
    definition: { run },
  };
}

function held(task: HeldTask, phase: Phase, graceMs: number | null = null): RegisteredTask {
  return ownTask(phase, (input, ctx) => task.options.run(input, ctx), graceMs);
}

/** Records the job of a phase, as whoever runs plans does. */
async function begun({ ledger }: Rig, phase: Phase, given: Partial<NewJob> = {}): Promise<string> {
  const [job] = await accept(ledger, [
    {
      jobId: nextJobId(),
      planId: PLAN_ID,
      phase,
      task: PLAN_TASKS[phase],
      schemaVersion: 1,
      payloadJson: encodePlanPayload(PLAN_ID, phase),
      ...given,
    },
  ]);
  await settled();
  return present(job).jobId;
}

describe("a task of the process's own", () => {
  test("is claimed and run with what its payload says, and the worker's row names it", async () => {
    const seen: unknown[] = [];
    const ownTasks = [ownTask("execute", (input) => seen.push(input))];
    await withRig({ tasks: [new HeldTask("ocr").options], ownTasks }, async (rig) => {
      const jobId = await begun(rig, "execute");
      expect(seen).toEqual([{ planId: PLAN_ID, phase: "execute" } satisfies PlanInput]);
      expect(await see(rig.ledger, jobId)).toMatchObject({
        status: "succeeded",
        planId: PLAN_ID,
        phase: "execute",
      });
      expect(await rig.ledger.workers()).toMatchObject([{ tasks: ["ocr", "plan:execute"] }]);
    });
  });

  test("can't be submitted, run now, or seen in the list of tasks", async () => {
    const ownTasks = [ownTask("execute", () => null)];
    await withRig({ tasks: [new HeldTask("ocr").options], ownTasks }, async ({ engine }) => {
      const request = { task: PLAN_TASKS.execute, input: { planId: PLAN_ID, phase: "execute" } };
      const unknown = { kind: "unknown_task", task: PLAN_TASKS.execute, known: ["ocr"] };
      expect(await engine.submit(request)).toEqual(unknown);
      expect(await engine.submitMany([request])).toEqual({
        kind: "refused",
        index: 0,
        refusal: unknown,
      });
      expect(await engine.run(request)).toEqual(unknown);
      expect(engine.tasks.names).toEqual(["ocr"]);
      expect(engine.tasks.get(PLAN_TASKS.execute)).toBeUndefined();
    });
  });

  test("fails in words of its own where its payload is a later version's, and is not tried again", async () => {
    const seen: unknown[] = [];
    await withRig({ ownTasks: [ownTask("apply", (input) => seen.push(input))] }, async (rig) => {
      const payloadJson = encodePlanPayload(PLAN_ID, "apply").replace(":1,", ":2,");
      const jobId = await begun(rig, "apply", { payloadJson, maxAttempts: 3 });
      expect(await see(rig.ledger, jobId)).toMatchObject({
        status: "failed",
        attempt: 1,
        errorMessage:
          "UnreadablePayload: the plan's version 2 is newer than this worker's (1): upgrade the worker",
      });
      expect(seen).toEqual([]);
    });
  });

  test("may go on after it was told to stop for as long as it says", async () => {
    const task = new HeldTask("execute");
    const ownTasks = [held(task, "execute", 60_000)];
    await withRig({ ownTasks, settings: { cancelGraceMs: 1_000 } }, async (rig) => {
      const jobId = await begun(rig, "execute");
      await rig.engine.cancel(jobId);
      await rig.clock.advance(59_000);
      expect(task.call(0).ctx.signal.aborted).toBe(true);
      expect(await see(rig.ledger, jobId)).toMatchObject({ status: "running" });
      task.call(0).succeed("rolled back");
      await settled();
      expect(await see(rig.ledger, jobId)).toMatchObject({ status: "cancelled" });
      const other = await begun(rig, "execute");
      await rig.engine.cancel(other);
      await rig.clock.advance(59_999);
      expect(await see(rig.ledger, other)).toMatchObject({ status: "running" });
      await rig.clock.advance(1);
      expect(await see(rig.ledger, other)).toMatchObject({ status: "cancelled" });
    });
  });

  test("is held to the limit of its job, not to that of single runs", async () => {
    const task = new HeldTask("execute");
    const ownTasks = [held(task, "execute")];
    await withRig({ ownTasks, settings: { modelRunTimeoutMs: 1_000 } }, async (rig) => {
      const jobId = await begun(rig, "execute", { timeoutMs: 60_000 });
      await rig.clock.advance(59_999);
      expect(task.call(0).ctx.signal.aborted).toBe(false);
      await rig.clock.advance(1);
      task.call(0).fail(new Error("stopped"));
      await settled();
      expect(await see(rig.ledger, jobId)).toMatchObject({
        status: "timed_out",
        errorMessage: "TimeLimit: exceeded 60000 ms",
      });
    });
  });

  test("holds up no shutdown beyond the deadline of the process", async () => {
    const task = new HeldTask("execute");
    const rig = createRig({
      ownTasks: [held(task, "execute", 600_000)],
      settings: { shutdownTimeoutMs: 5_000 },
    });
    await rig.engine.start();
    const jobId = await begun(rig, "execute");
    const startedMs = rig.clock.nowMs();
    await stopped(rig);
    expect(rig.clock.nowMs() - startedMs).toBeLessThanOrEqual(6_000);
    expect(await see(rig.ledger, jobId)).toMatchObject({ status: "cancelled" });
  });

  test("starts no guard against handlers that spin: it does not", async () => {
    let guards = 0;
    const started = (): never => {
      guards += 1;
      throw new Error("no room for a thread");
    };
    for (const tasks of [[], [new HeldTask("ocr").options]]) {
      const rig = createRig({
        tasks,
        ownTasks: [ownTask("apply", () => null)],
        stallGuard: started,
      });
      await rig.engine.start();
      await stopped(rig);
      expect(guards).toBe(tasks.length);
    }
  });

  test("a second task of its name is refused", () => {
    const own = ownTask("apply", () => null);
    expect(() => createRig({ ownTasks: [own, own] })).toThrow(/two tasks are named "plan:apply"/);
  });
});

describe("a pool full of plans", () => {
  test("runs their steps: each in the slot of its phase", async () => {
    const ocr = new HeldTask("ocr", { input: z.object({ n: z.number() }) });
    let rig: Rig | null = null;
    const phase = ownTask("execute", async (_, { signal }) => {
      const { engine, clock } = present(rig);
      const outcome = await nestedRun(
        {
          tasks: engine.tasks,
          runner: createInlineRunner({ clock }),
          clock,
          settings: { cancelGraceMs: 1_000, modelRunTimeoutMs: 0 },
        },
        {
          task: "ocr",
          input: { n: 1 },
          requestId: null,
          limitMs: null,
          signal,
          listener: { onProgress: () => undefined, onLog: () => undefined },
        },
      );
      return outcome.kind;
    });
    const options = { tasks: [ocr.options], ownTasks: [phase], settings: { maxWorkers: 2 } };
    await withRig(options, async (given) => {
      rig = given;
      const jobIds = [await begun(given, "execute"), await begun(given, "execute")];
      const queued = await submitted(given, "ocr", {}, { n: 2 });
      await settled();
      expect([ocr.running, given.engine.health().busy]).toEqual([2, 2]);
      ocr.call(0).succeed(1);
      ocr.call(1).succeed(1);
      await settled();
      for (const jobId of jobIds)
        expect(await given.ledger.result(jobId)).toMatchObject({ resultJson: '"succeeded"' });
      ocr.call(2).succeed(1);
      await settled();
      expect(await see(given.ledger, queued)).toMatchObject({ status: "succeeded" });
      expect(ocr.mostRunning).toBe(2);
    });
  });
});
