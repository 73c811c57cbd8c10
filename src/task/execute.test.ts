import { describe, expect, it } from "vitest";
import { z } from "zod";
import { VirtualClock } from "../../test/virtual-clock.js";
import { encodePayload } from "../job/payload.js";
import { Discard, Retry } from "./errors.js";
import { execute, type TaskEnding, type TaskRun } from "./execute.js";
import { Reports } from "./reports.js";
import { Stop } from "./stop.js";
import type { TaskContext, TaskOptions } from "./task.js";

interface Scene {
  readonly lines: string[];
  readonly run: (
    definition: TaskOptions,
    input?: unknown,
    more?: Partial<TaskRun>,
  ) => Promise<TaskEnding>;
}

function scene(): Scene {
  const lines: string[] = [];
  const reports = new Reports(new VirtualClock(), {
    progress: (json) => lines.push(`progress ${json}`),
    log: (level, message) => lines.push(`${level} ${message}`),
  });
  return {
    lines,
    run: (definition, input = {}, more = {}) =>
      execute({
        definition,
        payloadJson: encodePayload("t", JSON.stringify(input)),
        jobId: "01JZZZZZZZZZZZZZZZZZZZZZZZ",
        attempt: 2,
        requestId: "r1",
        stop: new Stop(),
        reports,
        ...more,
      }),
  };
}

const throwing = (thrown: unknown): TaskOptions => ({
  run: () => {
    throw thrown;
  },
});
const returning = (returned: unknown): TaskOptions => ({ run: () => returned });

describe("execute", () => {
  it("hands over the input as its schema makes it, and the context", async () => {
    const seen: unknown[] = [];
    const input = z.object({ n: z.string().transform(Number), m: z.number().default(1) });
    const run = (value: unknown, { jobId, attempt, requestId, signal }: TaskContext): string => {
      seen.push(value, { jobId, attempt, requestId, aborted: signal.aborted });
      return "done";
    };
    const ending = await scene().run({ input, run }, { n: "5" });
    expect(ending).toEqual({ kind: "succeeded", resultJson: '"done"' });
    const context = { jobId: "job_01JZZZZZZZZZZZZZZZZZZZZZZZ", attempt: 2, requestId: "r1" };
    expect(seen).toEqual([
      { n: 5, m: 1 },
      { ...context, aborted: false },
    ]);
  });

  it.each<[string, (ctx: TaskContext) => TaskContext]>([
    ["spread", (ctx) => ({ ...ctx })],
    ["inherit from", (ctx) => Object.create(ctx) as TaskContext],
    ["put behind a proxy", (ctx) => new Proxy(ctx, {})],
  ])("hands over a context that wrappers may %s", async (_, wrap) => {
    const stop = new Stop();
    const run = (__: unknown, ctx: TaskContext): boolean => wrap(ctx).signal === stop.signal;
    const ending = await scene().run({ run }, {}, { stop });
    expect(ending).toEqual({ kind: "succeeded", resultJson: "true" });
  });

  it("gives a synchronous request no job's id", async () => {
    const definition: TaskOptions = { run: (_, { jobId }) => ({ jobId }) };
    const ending = await scene().run(definition, {}, { jobId: null });
    expect(ending).toEqual({ kind: "succeeded", resultJson: '{"jobId":null}' });
  });

  it("applies the output's schema", async () => {
    const output = z.object({ at: z.string().transform((text) => text.length) });
    expect(await scene().run({ output, run: () => ({ at: "abc" }) })).toEqual({
      kind: "succeeded",
      resultJson: '{"at":3}',
    });
    expect(await scene().run({ output, run: () => ({ at: 1 }) })).toMatchObject({
      kind: "failed",
      errorMessage: expect.stringMatching(/^InvalidOutput: at: /) as string,
      retry: "default",
    });
  });

  it("passes on log and progress, until the end", async () => {
    const { lines, run } = scene();
    let kept: TaskContext | undefined;
    await run({
      run(_, ctx) {
        kept = ctx;
        const { progress, log } = ctx;
        progress(1);
        progress(2);
        for (const level of ["debug", "info", "warn", "error"] as const) log[level](level);
      },
    });
    kept?.progress(3);
    kept?.log.info("late");
    expect(lines).toEqual([
      "progress 1",
      "debug debug",
      "info info",
      "warn warn",
      "error error",
      "progress 2",
    ]);
  });

  it.each([
    ["an error", throwing(new TypeError("x")), "TypeError: x", "default"],
    ["text", throwing("x"), "Error: x", "default"],
    ["null", throwing(null), "Error: null", "default"],
    ["nothing", throwing(undefined), "Error: undefined", "default"],
    [
      "a late rejection",
      { run: () => Promise.reject(new RangeError("x")) },
      "RangeError: x",
      "default",
    ],
    ["Retry", throwing(new Retry("x", { afterMs: 5 })), "Retry: x", { afterMs: 5 }],
    ["Discard", throwing(new Discard("x")), "Discard: x", "never"],
    [
      "a thenable that throws",
      returning({
        then: () => {
          throw new Error("then");
        },
      }),
      "Error: then",
      "default",
    ],
    [
      "a thenable that rejects",
      returning({
        then: (_: unknown, no: (e: unknown) => void) => {
          no("x");
        },
      }),
      "Error: x",
      "default",
    ],
    [
      "a getter of then that throws",
      returning(
        Object.defineProperty({}, "then", {
          get: () => {
            throw new Error("get");
          },
        }),
      ),
      "Error: get",
      "default",
    ],
    [
      "a result that is no JSON",
      returning({ words: [1n] }),
      "ResultNotSerializable: result.words.0 is a BigInt",
      "default",
    ],
  ] as const)("records %s", async (_, definition, errorMessage, retry) => {
    expect(await scene().run(definition)).toEqual({ kind: "failed", errorMessage, retry });
  });

  it("takes the value of a thenable", async () => {
    const ending = await scene().run(
      returning({
        then: (yes: (v: unknown) => void) => {
          yes(5);
        },
      }),
    );
    expect(ending).toEqual({ kind: "succeeded", resultJson: "5" });
  });

  it("logs the stack of what was not meant, and of nothing else", async () => {
    const one = scene();
    await one.run(throwing(new Error("x")));
    expect(one.lines).toEqual(["warn the handler threw"]);
    const two = scene();
    await two.run(throwing(new Discard("x")));
    await two.run(throwing("x"));
    expect(two.lines).toEqual([]);
  });

  it("never tries again what can't be read or no longer fits the schema", async () => {
    const { run } = scene();
    expect(
      await run({ input: z.object({ n: z.number() }), run: () => 1 }, { n: "x" }),
    ).toMatchObject({
      errorMessage: expect.stringMatching(/^InvalidInput: n: /) as string,
      retry: "never",
    });
    expect(await run({ run: () => 1 }, {}, { payloadJson: "{" })).toEqual({
      kind: "failed",
      errorMessage: "UnreadablePayload: it is not JSON",
      retry: "never",
    });
  });

  describe("brings an older input up to the task's version", () => {
    const definition: TaskOptions = {
      input: z.object({ words: z.array(z.string()), n: z.number().default(7) }),
      version: 3,
      upgrade: {
        1: ({ text }: { text: string }) => ({ word: text }),
        2: ({ word }: { word: string }) => Promise.resolve({ words: [word] }),
      },
      run: (input) => input,
    };
    const ofVersion = (version: number, input: unknown): Partial<TaskRun> => ({
      payloadJson: encodePayload("t", JSON.stringify(input), version),
    });

    it.each([
      [1, { text: "a" }],
      [2, { word: "a" }],
      [3, { words: ["a"] }],
    ])("from version %i, before its schema", async (version, input) => {
      expect(await scene().run(definition, {}, ofVersion(version, input))).toEqual({
        kind: "succeeded",
        resultJson: '{"words":["a"],"n":7}',
      });
    });

    const throwing: NonNullable<TaskOptions["upgrade"]>[number] = () => {
      throw new TypeError("no text");
    };
    it.each<[string, Partial<TaskOptions>, number, string]>([
      [
        "a newer one",
        {},
        4,
        `UnreadablePayload: task "t": the input's version 4 is newer than this worker's (3): upgrade the worker`,
      ],
      [
        "an upgrader that throws",
        { upgrade: { 1: throwing, 2: (input) => input } },
        1,
        'UnreadablePayload: task "t": the upgrader of version 1 threw TypeError: no text',
      ],
      [
        "an upgrader that returns nothing",
        { upgrade: { 1: (input) => input, 2: () => undefined } },
        1,
        'UnreadablePayload: task "t": the upgrader of version 2 returned nothing',
      ],
      [
        "an upgrader that makes what the schema refuses",
        { upgrade: { 2: () => ({ words: 1 }) } },
        2,
        'InvalidInput: task "t", input brought up from version 2: words: ',
      ],
      [
        "one older than any upgrader",
        { upgrade: { 2: (input) => input } },
        1,
        'UnreadablePayload: task "t": there is no upgrader for an input of version 1',
      ],
    ])("and fails for good for %s", async (_, options, version, errorMessage) => {
      const ending = await scene().run({ ...definition, ...options }, {}, ofVersion(version, {}));
      expect(ending).toMatchObject({ kind: "failed", retry: "never" });
      expect(ending.kind === "failed" ? ending.errorMessage : "").toContain(errorMessage);
    });
  });

  it("runs nothing for a signal that was aborted before", async () => {
    let ran = false;
    const stop = new Stop();
    stop.ask("cancelled");
    const ending = await scene().run({ run: () => (ran = true) }, {}, { stop });
    expect(ending).toMatchObject({ kind: "failed", errorMessage: "AbortError: cancelled" });
    expect(ran).toBe(false);
  });
});
