import { describe, expect, test } from "vitest";
import { SILENT } from "../../test/started-run.js";
import { VirtualClock, settled } from "../../test/virtual-clock.js";
import { defineTask } from "../task/definition.js";
import { Attempt, runLimitMs, shorterLimitMs } from "./attempt.js";
import type { RunOutcome, Runner } from "./runner/runner.js";

const TASK = defineTask({ name: "t", run: () => null }, { file: null, defaultName: null });

/** A runner whose one run does what the test says; `kill` ends it unless it is `undying`. */
function scripted() {
  const told: string[] = [];
  let settle: (outcome: RunOutcome) => void = () => undefined;
  const runner: Runner = {
    start: (_request, listener) => {
      settle = (outcome) => {
        listener.onOutcome(outcome);
      };
      return {
        abort: (reason) => told.push(`abort: ${reason}`),
        kill: () => {
          told.push("kill");
          settle({ kind: "killed" });
        },
      };
    },
    close: () => Promise.resolve(),
  };
  return {
    runner,
    told,
    settle: (outcome: RunOutcome) => {
      settle(outcome);
    },
  };
}

function attempt(runner: Runner, clock: VirtualClock, limitMs: number, task = TASK) {
  let ended: (outcome: RunOutcome) => void = () => undefined;
  const outcome = new Promise<RunOutcome>((resolve) => (ended = resolve));
  const run = new Attempt(
    { runner, clock, graceMs: 100 },
    { jobId: null, attempt: 1, task, payloadJson: "{}", requestId: null },
    { ...SILENT, onOutcome: ended },
    limitMs,
  );
  return { run, outcome };
}

test("a run has the limit that was asked for, else its task's own, and the setting bounds both", () => {
  expect(runLimitMs(null, { timeoutMs: null }, 0)).toBe(0);
  expect(runLimitMs(null, { timeoutMs: 5 }, 0)).toBe(5);
  expect(runLimitMs(9, { timeoutMs: 5 }, 0)).toBe(9);
  expect(runLimitMs(9, { timeoutMs: 5 }, 7)).toBe(7);
  expect(runLimitMs(null, { timeoutMs: null }, 7)).toBe(7);
});

test("of two time limits the first one counts, and 0 is none", () => {
  expect(shorterLimitMs(0, 0)).toBe(0);
  expect(shorterLimitMs(5, 0)).toBe(5);
  expect(shorterLimitMs(0, 7)).toBe(7);
  expect(shorterLimitMs(5, 7)).toBe(5);
  expect(shorterLimitMs(9, 7)).toBe(7);
});

describe("one run", () => {
  test("ends with its outcome and leaves no timer", async () => {
    const clock = new VirtualClock();
    const { runner, settle, told } = scripted();
    const { run, outcome } = attempt(runner, clock, 500);
    await clock.advance(30);
    settle({ kind: "succeeded", resultJson: "1" });
    expect(await outcome).toEqual({ kind: "succeeded", resultJson: "1" });
    await clock.advance(1_000);
    expect(run).toMatchObject({ runMs: 30 });
    expect(run.causes.size).toBe(0);
    expect(told).toEqual([]);
    expect(clock.pendingTimers).toBe(0);
  });

  test("is told to stop at its limit, and killed when it does not within the grace", async () => {
    const clock = new VirtualClock();
    const { runner, told } = scripted();
    const { run, outcome } = attempt(runner, clock, 500);
    await clock.advance(499);
    expect(told).toEqual([]);
    await clock.advance(1);
    expect(told).toEqual(["abort: time limit"]);
    await clock.advance(99);
    expect(told).toEqual(["abort: time limit"]);
    await clock.advance(1);
    expect(told).toEqual(["abort: time limit", "kill"]);
    expect(await outcome).toEqual({ kind: "killed" });
    expect([...run.causes]).toEqual(["time_limit"]);
    expect(clock.pendingTimers).toBe(0);
  });

  test("goes on for as long as its task says, where it says so", async () => {
    const clock = new VirtualClock();
    const { runner, told } = scripted();
    const { run, outcome } = attempt(runner, clock, 0, { ...TASK, graceMs: 5_000 });
    run.stop("cancelled");
    await clock.advance(4_999);
    expect(told).toEqual(["abort: cancelled"]);
    await clock.advance(1);
    expect(told).toEqual(["abort: cancelled", "kill"]);
    expect(await outcome).toEqual({ kind: "killed" });
  });

  test("counts one grace period, from the first cause that has one", async () => {
    const clock = new VirtualClock();
    const { runner, told } = scripted();
    const { run, outcome } = attempt(runner, clock, 0);
    run.stop("shutdown");
    await clock.advance(1_000);
    expect(told).toEqual(["abort: shutdown"]);
    run.stop("cancelled");
    await clock.advance(60);
    run.stop("lost");
    run.stop("cancelled");
    await clock.advance(40);
    expect(told.at(-1)).toBe("kill");
    await outcome;
    expect([...run.causes]).toEqual(["shutdown", "cancelled", "lost"]);
  });

  test("F21: is not over before its handler has gone", async () => {
    const clock = new VirtualClock();
    const { runner, settle } = scripted();
    const { run, outcome } = attempt(runner, clock, 0);
    let over = false;
    void outcome.then(() => (over = true));
    run.stop("cancelled");
    await settled();
    expect(over).toBe(false);
    settle({ kind: "succeeded", resultJson: "1" });
    await settled();
    expect(over).toBe(true);
    run.stop("lost");
    run.kill();
    expect([...run.causes]).toEqual(["cancelled"]);
  });

  test("ends as failed when the runner itself throws", async () => {
    const runner: Runner = {
      start: () => {
        throw new Error("no threads left");
      },
      close: () => Promise.resolve(),
    };
    const { outcome } = attempt(runner, new VirtualClock(), 0);
    expect(await outcome).toEqual({
      kind: "failed",
      errorMessage: "RunnerFault: no threads left",
      retry: "default",
    });
  });
});
