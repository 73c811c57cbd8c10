import { spawnSync } from "node:child_process";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { SILENT, startRun, type StartedRun } from "../../../test/started-run.js";
import { MAX_PROGRESS_BYTES } from "../../job/limits.js";
import { encodePayload } from "../../job/payload.js";
import { systemClock } from "../../runtime/clock.js";
import { silentLogger, type LogFields } from "../../runtime/logger.js";
import { defineTask, defineInline } from "../../task/definition.js";
import { dispatchRunner } from "./dispatch-runner.js";
import { createInlineRunner } from "./inline-runner.js";
import type { RunOutcome, RunRequest, Runner } from "./runner.js";
import { createThreadRunner, type ThreadRunnerOptions } from "./thread-runner.js";

const fixtures = resolve(import.meta.dirname, "../../../test/fixtures/tasks");
const runners: Runner[] = [];
afterEach(async () => {
  await Promise.all(runners.splice(0).map((runner) => runner.close()));
});

function runnerOf(options: Partial<ThreadRunnerOptions> = {}): Runner {
  const runner = createThreadRunner({ maxThreads: 2, logger: silentLogger, ...options });
  runners.push(runner);
  return runner;
}

/** The thread reads the file itself; what stands here is not run. */
function requestOf(fileName: string, input: unknown, more: Partial<RunRequest> = {}): RunRequest {
  const file = resolve(fixtures, fileName);
  const defaultName = fileName.replace(/\.\w+$/, "");
  const task = defineTask(() => undefined, { file, defaultName });
  const payloadJson = encodePayload(task.name, JSON.stringify(input));
  return { jobId: null, attempt: 1, task, payloadJson, requestId: null, ...more };
}

function start(runner: Runner, act: string, more: object = {}, reports = SILENT): StartedRun {
  return startRun(runner, requestOf("act.mjs", { act, ...more }), reports);
}

async function resultOf(run: StartedRun): Promise<unknown> {
  const outcome = await run.outcome;
  if (outcome.kind !== "succeeded") throw new Error(JSON.stringify(outcome));
  return JSON.parse(outcome.resultJson);
}

/** Starts it, waits for its first report, does `then` to it, and gives its outcome. */
async function interrupted(
  runner: Runner,
  act: string,
  then: (run: StartedRun) => void,
): Promise<RunOutcome> {
  let reported: () => void = () => undefined;
  const report = new Promise<void>((done) => (reported = done));
  const run = start(
    runner,
    act,
    {},
    {
      ...SILENT,
      onProgress: () => {
        reported();
      },
    },
  );
  await report;
  then(run);
  return run.outcome;
}

const threadOf = async (runner: Runner): Promise<{ threadId: number; runs: number }> =>
  (await resultOf(start(runner, "thread"))) as { threadId: number; runs: number };

describe("a run in a thread", () => {
  it("takes the payload there and brings the result back", async () => {
    const runner = runnerOf();
    const value = { text: "ü\ud800\0", list: [1, null, true], nested: { a: {} } };
    const run = start(runner, "echo", { value });
    expect(await resultOf(run)).toEqual(value);
  });

  it("knows which run it is", async () => {
    const job = { jobId: "01JZZZZZZZZZZZZZZZZZZZZZZZ", attempt: 3, requestId: "r9" };
    const run = startRun(runnerOf(), requestOf("act.mjs", { act: "context" }, job));
    expect(await resultOf(run)).toEqual({ ...job, jobId: `job_${job.jobId}` });
  });

  it("runs TypeScript with schemas and upgraders, and keeps what Retry and Discard ask for", async () => {
    const runner = runnerOf({ maxThreads: 1 });
    const typed = (input: unknown, version = 2): Promise<RunOutcome> => {
      const payloadJson = encodePayload("typed", JSON.stringify(input), version);
      return startRun(runner, requestOf("typed.ts", input, { payloadJson })).outcome;
    };
    expect(await typed({ word: "ab" })).toEqual({
      kind: "succeeded",
      resultJson: '{"text":"AB AB"}',
    });
    expect(await typed({ word: "retry" })).toMatchObject({ retry: { afterMs: 5_000 } });
    expect(await typed({ word: "discard" })).toMatchObject({
      errorMessage: "Discard: never",
      retry: "never",
    });
    expect(await typed({ text: "older" }, 1)).toMatchObject({
      resultJson: '{"text":"OLDER OLDER"}',
    });
    expect(await typed({ word: "newer" }, 3)).toMatchObject({
      errorMessage:
        "UnreadablePayload: task \"typed\": the input's version 3 is newer than this worker's (2): upgrade the worker",
      retry: "never",
    });
    expect(await typed({ word: "" })).toMatchObject({
      errorMessage: expect.stringMatching(/^InvalidInput: word: /) as string,
      retry: "never",
    });
  });

  it("fails with what the handler threw", async () => {
    expect(await start(runnerOf(), "throw", { message: "bad" }).outcome).toEqual({
      kind: "failed",
      errorMessage: "RangeError: bad",
      retry: "default",
    });
  });

  it("coalesces progress and sends the last", async () => {
    const seen: string[] = [];
    const listener = { ...SILENT, onProgress: (json: string) => seen.push(json) };
    await start(runnerOf(), "many", { count: 10_000 }, listener).outcome;
    expect(seen[0]).toBe('{"step":1}');
    expect(seen.at(-1)).toBe('{"step":10000}');
    expect(seen.length).toBeLessThan(100);
    expect(seen.every((json) => json.length <= MAX_PROGRESS_BYTES)).toBe(true);
  });

  it("logs what the handler prints, and keeps it off standard output", async () => {
    const lines: string[] = [];
    const onLog = (level: string, message: string, fields: LogFields): void => {
      lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
    };
    await start(runnerOf(), "print", { lines: 1_000 }, { ...SILENT, onLog }).outcome;
    expect(lines.slice(0, 6)).toEqual([
      "info log and 1 {}",
      "warn to error {}",
      "info to stdout {}",
      "warn to stderr {}",
      'info to the log {"a":"1","error":"Error: inner"}',
      "info 0 {}",
    ]);
    expect(lines.at(-1)).toMatch(/^warn log lines were dropped: too many \{"dropped":\d+\}$/);
    expect(lines.length).toBeLessThan(300);
  });

  it("can't be harmed by what it posts, and may start threads of its own", async () => {
    const runner = runnerOf();
    expect(await resultOf(start(runner, "post to the parent"))).toBe("unharmed");
    expect(await resultOf(start(runner, "start a thread"))).toBe("from within");
    expect(await start(runner, "chdir", { to: "/" }).outcome).toMatchObject({
      errorMessage: expect.stringContaining(
        "process.chdir() is not supported in workers",
      ) as string,
    });
  });
});

describe("abort", () => {
  it("sets the signal with its reason", async () => {
    const outcome = await interrupted(runnerOf(), "wait for abort", (run) => {
      run.abort("cancelled by its user");
      run.abort("again");
    });
    const errorMessage = "AbortError: cancelled by its user";
    expect(outcome).toEqual({ kind: "failed", errorMessage, retry: "default" });
  });

  it("is seen by a handler that spins and looks at its signal", async () => {
    const runner = runnerOf();
    const spinning = await interrupted(runner, "spin until aborted", (run) => run.abort("stop"));
    const resultJson = '{"name":"AbortError","message":"stop"}';
    expect(spinning).toEqual({ kind: "succeeded", resultJson });
    const thrown = await interrupted(runner, "spin until thrown", (run) => run.abort("stop"));
    expect(thrown).toMatchObject({ errorMessage: "AbortError: stop" });
  });

  it("before the thread is there keeps the handler from running", async () => {
    const run = start(runnerOf(), "spin for ever");
    run.abort("too late for you");
    expect(await run.outcome).toMatchObject({ errorMessage: "AbortError: too late for you" });
  });
});

describe("kill", () => {
  it.each(["spin for ever", "hang"])("ends a handler that does not listen (%s)", async (act) => {
    const runner = runnerOf({ maxThreads: 1 });
    const before = await threadOf(runner);
    const outcome = await interrupted(runner, act, (run) => {
      run.kill();
      run.kill();
      run.abort("after");
    });
    expect(outcome).toEqual({ kind: "killed" });
    const after = await threadOf(runner);
    expect(after.threadId).not.toBe(before.threadId);
    expect(after.runs).toBe(1);
  });

  it("before the thread is there", async () => {
    const run = start(runnerOf(), "echo");
    run.kill();
    expect(await run.outcome).toEqual({ kind: "killed" });
  });

  it("after the end does nothing", async () => {
    const runner = runnerOf();
    const run = start(runner, "thread");
    const { threadId } = (await resultOf(run)) as { threadId: number };
    run.kill();
    expect(await run.outcome).toMatchObject({ kind: "succeeded" });
    expect((await threadOf(runner)).threadId).toBe(threadId);
  });
});

describe("a thread", () => {
  it("is reused while it is warm, the one that knows the file first", async () => {
    const runner = runnerOf({ maxThreads: 2 });
    const [act, plain] = await Promise.all([
      threadOf(runner),
      resultOf(startRun(runner, requestOf("plain.js", { n: 1 }))),
    ]);
    expect(plain).toEqual({ got: { n: 1 } });
    for (let run = 2; run <= 4; run += 1) {
      await resultOf(startRun(runner, requestOf("plain.js", {})));
      expect(await threadOf(runner)).toEqual({ threadId: act.threadId, runs: run });
    }
  });

  it("runs one at a time", async () => {
    const runner = runnerOf({ maxThreads: 4 });
    const all = await Promise.all([1, 2, 3, 4].map(() => threadOf(runner)));
    expect(new Set(all.map(({ threadId }) => threadId)).size).toBe(4);
    expect(all.every(({ runs }) => runs === 1)).toBe(true);
  });

  it("is not kept beyond the bound", async () => {
    const runner = runnerOf({ maxThreads: 1 });
    const first = await Promise.all([threadOf(runner), threadOf(runner)]);
    const later = await Promise.all([threadOf(runner), threadOf(runner)]);
    const known = new Set(first.map(({ threadId }) => threadId));
    expect(later.filter(({ threadId }) => known.has(threadId))).toHaveLength(1);
  });

  it.each([
    [
      "exit",
      { code: 3 },
      "ThreadExit: the handler ended its thread (process.exit, code 3); return or throw instead",
    ],
    [
      "exit later",
      { code: 0 },
      "ThreadExit: the handler ended its thread (process.exit, code 0); return or throw instead",
    ],
    ["uncaught", {}, "ThreadExit: nobody caught TypeError: thrown from a timer"],
    ["unhandled", {}, "ThreadExit: nobody caught TypeError: rejected to nobody"],
  ])("that ends within its run (%s) fails it, and is replaced", async (act, more, errorMessage) => {
    const runner = runnerOf({ maxThreads: 1 });
    const before = await threadOf(runner);
    expect(await start(runner, act, more).outcome).toEqual({
      kind: "failed",
      errorMessage,
      retry: "default",
    });
    expect((await threadOf(runner)).threadId).not.toBe(before.threadId);
  });

  it("that runs out of memory fails its run alone", async () => {
    const runner = runnerOf({ resourceLimits: { maxOldGenerationSizeMb: 32 } });
    expect(await start(runner, "fill the heap").outcome).toMatchObject({
      kind: "failed",
      errorMessage: "ThreadExit: out of memory: the thread's heap reached its limit",
    });
    expect(await threadOf(runner)).toMatchObject({ runs: 1 });
  });

  it("whose earlier run left something behind that throws ends its present run well, and is replaced", async () => {
    const warnings: LogFields[] = [];
    const logger = { ...silentLogger, warn: (fields: LogFields) => warnings.push(fields) };
    const runner = runnerOf({ maxThreads: 1, logger });
    expect(await resultOf(start(runner, "leave a trap"))).toBe("left");
    const sprung = (await resultOf(start(runner, "spring the trap", { value: 1 }))) as {
      readonly value: number;
      readonly threadId: number;
    };
    expect(sprung.value).toBe(1);
    expect(warnings).toEqual([{ task: "act", error: "EvalError: left behind" }]);
    expect((await threadOf(runner)).threadId).not.toBe(sprung.threadId);
  });

  it.each(["throw when idle", "exit when idle"])(
    "that dies idle (%s) costs no later run anything",
    async (act) => {
      const runner = runnerOf({ maxThreads: 1 });
      for (let round = 0; round < 5; round += 1) {
        await resultOf(start(runner, act));
        // The next run meets the thread before, while or after it dies: it must not matter.
        for (let turn = 0; turn < round; turn += 1)
          await resultOf(start(runner, "echo", { value: 1 }));
        expect(await resultOf(start(runner, "echo", { value: 1 }))).toBe(1);
      }
    },
  );

  it("that can't load the file says so, and is replaced", async () => {
    const runner = runnerOf({ maxThreads: 1 });
    const missing = startRun(runner, requestOf("missing.mjs", {}));
    expect(await missing.outcome).toMatchObject({
      kind: "failed",
      errorMessage: expect.stringMatching(
        /^TaskLoadError: .*missing\.mjs: Error: Cannot find module/,
      ) as string,
    });
    expect(await threadOf(runner)).toMatchObject({ runs: 1 });
  });
});

it("idle threads do not keep a program alive, and what a handler prints is not in its output", () => {
  const built = pathToFileURL(resolve(import.meta.dirname, "../../../dist")).href;
  const request = JSON.stringify(requestOf("act.mjs", { act: "print", lines: 1 }));
  const program = `
    import { createThreadRunner } from "${built}/engine/runner/thread-runner.js";
    const runner = createThreadRunner({ maxThreads: 1, logger: console });
    const onOutcome = ({ kind }) => console.log(kind);
    runner.start(${request}, { onProgress() {}, onLog() {}, onOutcome });`;
  const args = ["--input-type=module", "--eval", program];
  const ended = spawnSync(process.execPath, args, { timeout: 20_000, encoding: "utf8" });
  expect(ended).toMatchObject({ status: 0, stdout: "succeeded\n", stderr: "" });
});

describe("close", () => {
  it("waits for the runs under way, ends all threads, and can be called again", async () => {
    const runner = runnerOf();
    await threadOf(runner);
    const run = start(runner, "many", { count: 1_000 });
    const closing = Promise.all([runner.close(), runner.close()]);
    expect(await resultOf(run)).toBe(1_000);
    await closing;
    await runner.close();
    expect(() => start(runner, "echo")).toThrow("closed");
  });
});

describe("dispatchRunner", () => {
  it("sends each task where its isolation says", async () => {
    const inline = createInlineRunner({ clock: systemClock });
    const runner = dispatchRunner({ inline, thread: runnerOf() });
    const [here] = defineInline({ here: () => "here" });
    if (here === undefined) throw new Error("no task");
    const request = { ...requestOf("act.mjs", { act: "echo", value: "there" }) };
    expect(await resultOf(startRun(runner, request))).toBe("there");
    expect(await resultOf(startRun(runner, { ...request, task: here }))).toBe("here");
    await runner.close();
  });
});
