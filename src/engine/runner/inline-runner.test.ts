import { describe, expect, it } from "vitest";
import { startRun } from "../../../test/started-run.js";
import { VirtualClock, settled } from "../../../test/virtual-clock.js";
import { encodePayload } from "../../job/payload.js";
import { defineInline } from "../../task/definition.js";
import type { TaskOptions } from "../../task/task.js";
import { createInlineRunner } from "./inline-runner.js";
import type { RunOutcome, RunReports, RunRequest } from "./runner.js";

function requestOf(
  written: TaskOptions | TaskOptions["run"],
  input: unknown = {},
  version = 1,
): RunRequest {
  const [task] = defineInline({ t: written });
  if (task === undefined) throw new Error("no task");
  const payloadJson = encodePayload("t", JSON.stringify(input), version);
  return { jobId: null, attempt: 1, task, payloadJson, requestId: null };
}

function scene() {
  const seen: string[] = [];
  const listener: RunReports = {
    onProgress: (json) => seen.push(json),
    onLog: (level, message, fields) => seen.push(`${level} ${message} ${JSON.stringify(fields)}`),
  };
  return { runner: createInlineRunner({ clock: new VirtualClock() }), listener, seen };
}

describe("the inline runner", () => {
  it("runs a handler, but not within the call that starts it", async () => {
    const { runner, listener, seen } = scene();
    const run = startRun(
      runner,
      requestOf(
        (input, { progress, log }) => {
          progress(1);
          log.info("at it", { a: 1 });
          return input;
        },
        { n: 1 },
      ),
      listener,
    );
    expect(seen).toEqual([]);
    expect(await run.outcome).toEqual({ kind: "succeeded", resultJson: '{"n":1}' });
    expect(seen).toEqual(["1", 'info at it {"a":1}']);
  });

  it("brings an older input up before the handler gets it", async () => {
    const { runner, listener } = scene();
    const definition: TaskOptions = {
      version: 2,
      upgrade: { 1: ({ text }: { readonly text: string }) => ({ word: text }) },
      run: (input) => input,
    };
    const outcomeOf = (input: unknown, version: number): Promise<RunOutcome> =>
      startRun(runner, requestOf(definition, input, version), listener).outcome;
    const upgraded = { kind: "succeeded", resultJson: '{"word":"a"}' };
    expect(await outcomeOf({ text: "a" }, 1)).toEqual(upgraded);
    expect(await outcomeOf({ word: "a" }, 2)).toEqual(upgraded);
    expect(await outcomeOf({ word: "a" }, 3)).toMatchObject({
      errorMessage: expect.stringMatching(
        /^UnreadablePayload: task "t": .* upgrade the worker$/,
      ) as string,
      retry: "never",
    });
  });

  it("sets the signal once, with the first reason", async () => {
    const { runner, listener } = scene();
    const run = startRun(
      runner,
      requestOf(
        (_, { signal }) =>
          new Promise((__, reject) => {
            signal.addEventListener("abort", () => {
              reject(signal.reason as Error);
            });
          }),
      ),
      listener,
    );
    await settled();
    run.abort("cancelled by its user");
    run.abort("again");
    const errorMessage = "AbortError: cancelled by its user";
    expect(await run.outcome).toEqual({ kind: "failed", errorMessage, retry: "default" });
    run.abort("after the end");
    run.kill();
    expect(await run.outcome).toMatchObject({ kind: "failed" });
  });

  it("gives up a run that never settles, and sets its signal", async () => {
    const { runner, listener } = scene();
    let signal: AbortSignal | undefined;
    const run = startRun(
      runner,
      requestOf((_, ctx) => {
        ({ signal } = ctx);
        return new Promise(() => undefined);
      }),
      listener,
    );
    await settled();
    run.kill();
    run.kill();
    expect(await run.outcome).toEqual({ kind: "abandoned" });
    expect(signal?.aborted).toBe(true);
    await runner.close();
  });

  it("drops what an abandoned run still says, and its late rejection harms nobody", async () => {
    const { runner, listener, seen } = scene();
    let fail: (error: Error) => void = () => undefined;
    const unhandled: unknown[] = [];
    const note = (reason: unknown): number => unhandled.push(reason);
    process.on("unhandledRejection", note);
    try {
      const run = startRun(
        runner,
        requestOf(async (_, { progress, log }) => {
          try {
            await new Promise((__, reject) => (fail = reject));
          } finally {
            progress("late");
            log.error("late");
          }
        }),
        listener,
      );
      await settled();
      run.kill();
      expect(await run.outcome).toEqual({ kind: "abandoned" });
      fail(new Error("late"));
      await settled();
      expect(seen).toEqual([]);
      expect(unhandled).toEqual([]);
    } finally {
      process.off("unhandledRejection", note);
    }
  });

  it("closes when the last run has ended", async () => {
    const { runner, listener } = scene();
    let finish: (value: string) => void = () => undefined;
    const run = startRun(
      runner,
      requestOf(() => new Promise((done) => (finish = done))),
      listener,
    );
    let closed = false;
    const closing = runner.close().then(() => (closed = true));
    await settled();
    expect(closed).toBe(false);
    finish("done");
    await closing;
    expect(await run.outcome).toEqual({ kind: "succeeded", resultJson: '"done"' });
    await runner.close();
  });

  it("leaves no timer behind", async () => {
    const clock = new VirtualClock();
    const runner = createInlineRunner({ clock });
    const reporting = requestOf((_, { progress }) => {
      progress(1);
      progress(2);
      return new Promise(() => undefined);
    });
    const run = startRun(runner, reporting);
    await settled();
    expect(clock.pendingTimers).toBe(1);
    run.kill();
    expect(clock.pendingTimers).toBe(0);
    await run.outcome;
  });
});
