import { describe, expect, test } from "vitest";
import { z } from "zod";
import { HeldTask } from "../../test/engine-rig.js";
import { settled, VirtualClock } from "../../test/virtual-clock.js";
import { defineInline } from "../task/definition.js";
import { Retry } from "../task/errors.js";
import { createTaskRegistry } from "../task/registry.js";
import type { TaskOptions } from "../task/task.js";
import {
  nestedRun,
  type NestedOutcome,
  type NestedRunPorts,
  type NestedRunRequest,
} from "./nested-run.js";
import { createInlineRunner } from "./runner/inline-runner.js";

interface Bench {
  readonly clock: VirtualClock;
  /** Tells the caller to stop. */
  readonly caller: AbortController;
  /** What the listener heard. */
  readonly heard: unknown[];
  readonly run: (given?: Partial<NestedRunRequest>) => Promise<NestedOutcome>;
}

function benchOf(
  tasks: readonly TaskOptions[],
  settings: Partial<NestedRunPorts["settings"]> = {},
): Bench {
  const clock = new VirtualClock();
  const caller = new AbortController();
  const heard: unknown[] = [];
  const ports: NestedRunPorts = {
    tasks: createTaskRegistry(defineInline(tasks)),
    runner: createInlineRunner({ clock }),
    clock,
    settings: { cancelGraceMs: 1_000, modelRunTimeoutMs: 0, ...settings },
  };
  const listener = {
    onProgress: (json: string) => heard.push(json),
    onLog: (level: string, message: string, fields: object) => heard.push([level, message, fields]),
  };
  const { signal } = caller;
  const run = (given: Partial<NestedRunRequest> = {}): Promise<NestedOutcome> =>
    nestedRun(ports, {
      task: "ocr",
      input: { n: 1 },
      requestId: null,
      limitMs: null,
      signal,
      listener,
      ...given,
    });
  return { clock, caller, heard, run };
}

const INPUT = z.object({ n: z.number() });

describe("a nested run", () => {
  test("gives the result, and passes on what the handler says meanwhile", async () => {
    const { run, heard } = benchOf([
      {
        name: "ocr",
        input: INPUT,
        run: (input, { jobId, requestId, attempt, log, progress }) => {
          log.info("working", { jobId, requestId, attempt });
          progress(0.5);
          return input;
        },
      },
    ]);
    expect(await run({ requestId: "r1" })).toEqual({ kind: "succeeded", resultJson: '{"n":1}' });
    expect(heard).toEqual([
      ["info", "working", { jobId: null, requestId: "r1", attempt: 1 }],
      "0.5",
    ]);
  });

  test("fails with what the handler threw, and is not tried again", async () => {
    const failing = (error: Error): TaskOptions[] => [
      { name: "ocr", run: () => Promise.reject(error) },
    ];
    const thrown = async (error: Error): Promise<NestedOutcome> => benchOf(failing(error)).run();
    expect(await thrown(new RangeError("bad"))).toEqual({
      kind: "failed",
      errorMessage: "RangeError: bad",
    });
    expect(await thrown(new Retry("later", { afterMs: 5_000 }))).toEqual({
      kind: "failed",
      errorMessage: "Retry: later",
    });
  });

  test("runs nothing where the task is unknown, or does not take the input", async () => {
    const task = new HeldTask("ocr", { input: INPUT });
    const { run } = benchOf([task.options]);
    expect(await run({ task: "orc" })).toEqual({
      kind: "failed",
      errorMessage: 'UnknownTask: this process has no task "orc"; it has ocr',
    });
    expect(await run({ input: { n: "1" } })).toMatchObject({
      kind: "failed",
      errorMessage: expect.stringMatching(/^InvalidInput: n: /) as string,
    });
    expect(await run({ input: { n: 1n } })).toMatchObject({
      kind: "failed",
      errorMessage: expect.stringMatching(/^InvalidInput: /) as string,
    });
    expect(task.calls).toEqual([]);
  });

  test("is stopped with its caller, and ends when the handler has gone", async () => {
    const task = new HeldTask("ocr");
    const { run, caller, clock } = benchOf([task.options]);
    const running = run();
    await settled();
    caller.abort();
    expect(task.call(0).ctx.signal.reason).toMatchObject({
      message: "the caller was told to stop",
    });
    await clock.advance(999);
    task.call(0).succeed("after all");
    expect(await running).toEqual({ kind: "stopped" });
    expect(clock.pendingTimers).toBe(0);
  });

  test("is given up where it goes on past the grace", async () => {
    const task = new HeldTask("ocr");
    const { run, caller, clock } = benchOf([task.options]);
    const outcomes: NestedOutcome[] = [];
    const running = run().then((outcome) => outcomes.push(outcome));
    await settled();
    caller.abort();
    await clock.advance(999);
    expect(outcomes).toEqual([]);
    await clock.advance(1);
    await running;
    expect(outcomes).toEqual([{ kind: "stopped" }]);
  });

  test("has the limit asked for, else its task's own, within the setting", async () => {
    const limits: readonly (readonly [number | null, string | undefined, number, number])[] = [
      [400, undefined, 0, 400],
      [400, "1s", 0, 400],
      [null, "300ms", 0, 300],
      [null, undefined, 200, 200],
      [400, "300ms", 200, 200],
    ];
    for (const [limitMs, timeout, modelRunTimeoutMs, expected] of limits) {
      const task = new HeldTask("ocr", timeout === undefined ? {} : { timeout });
      const { run, clock } = benchOf([task.options], { modelRunTimeoutMs });
      const running = run({ limitMs });
      await settled();
      await clock.advance(expected - 1);
      expect(task.call(0).ctx.signal.aborted).toBe(false);
      await clock.advance(1);
      expect(task.call(0).ctx.signal.aborted).toBe(true);
      task.call(0).fail(new Error("stopped"));
      expect(await running).toEqual({
        kind: "timed_out",
        errorMessage: `TimeLimit: exceeded ${String(expected)} ms`,
      });
    }
  });

  test("does not begin for a caller who was told to stop, also while the input was checked", async () => {
    const slow = INPUT.refine(async () => Promise.resolve(true));
    const task = new HeldTask("ocr", { input: slow });
    const { run, caller } = benchOf([task.options]);
    const running = run();
    caller.abort();
    expect(await running).toEqual({ kind: "stopped" });
    expect(await run()).toEqual({ kind: "stopped" });
    expect(task.calls).toEqual([]);
  });
});
