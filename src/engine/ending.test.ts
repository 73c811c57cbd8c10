import { describe, expect, test } from "vitest";
import { endOf, type EndedRun, type StopCause } from "./ending.js";

const succeeded = { kind: "succeeded", resultJson: "1" } as const;
const failed = { kind: "failed", errorMessage: "E: x", retry: "default" } as const;
const discarded = { ...failed, retry: "never" } as const;
const killed = { kind: "killed" } as const;
const abandoned = { kind: "abandoned" } as const;

function end(outcome: EndedRun["outcome"], causes: StopCause[], attempt = 1, maxAttempts = 1) {
  return endOf({
    outcome,
    causes: new Set(causes),
    attempt,
    maxAttempts,
    limitMs: 500,
    unit: 0.5,
  });
}

const FAIL = { event: "fail", errorMessage: "E: x" };
const STOP = { event: "stop" };
const TIME_OUT = { event: "time_out", errorMessage: "TimeLimit: exceeded 500 ms" };
const SUCCEED = { event: "succeed", resultJson: "1" };
const INTERRUPTED = {
  event: "retry",
  errorMessage: "Shutdown: the worker stopped before the job ended",
  delayMs: 0,
};

describe("what a job becomes when its handler has gone", () => {
  test.each([
    ["its result", succeeded, [], SUCCEED],
    ["failed", failed, [], FAIL],
    ["nothing when the claim was lost", succeeded, ["lost", "cancelled", "time_limit"], null],
    ["cancelled whatever it returned", succeeded, ["cancelled"], STOP],
    ["cancelled whatever it threw", failed, ["cancelled"], STOP],
    ["cancelled when it had to be killed", killed, ["cancelled"], STOP],
    ["cancelled also after its time was up", abandoned, ["time_limit", "cancelled"], STOP],
    ["cancelled also in a shutdown", succeeded, ["shutdown", "cancelled"], STOP],
    ["timed out whatever it returned", succeeded, ["time_limit"], TIME_OUT],
    ["timed out when it had to be killed", killed, ["time_limit", "shutdown"], TIME_OUT],
    ["its result when it finished in a shutdown", succeeded, ["shutdown"], SUCCEED],
    ["cancelled when a shutdown broke its only attempt off", failed, ["shutdown"], STOP],
    ["cancelled when a shutdown killed its only attempt", killed, ["shutdown"], STOP],
    ["failed when it said so itself in a shutdown", discarded, ["shutdown"], FAIL],
  ] as const)("%s", (_, outcome, causes, expected) => {
    expect(end(outcome, [...causes])).toEqual(expected);
  });

  test("with attempts left: queued again, after a pause, or at once after a shutdown", () => {
    expect(end(failed, [], 1, 2)).toEqual({ event: "retry", errorMessage: "E: x", delayMs: 750 });
    expect(end(failed, [], 2, 3)).toMatchObject({ event: "retry", delayMs: 1_500 });
    expect(end(failed, [], 2, 2)).toEqual(FAIL);
    expect(end({ ...failed, retry: { afterMs: 7 } }, [], 1, 2)).toMatchObject({ delayMs: 7 });
    expect(end(discarded, [], 1, 2)).toEqual(FAIL);
    expect(end(failed, ["shutdown"], 1, 2)).toEqual(INTERRUPTED);
    expect(end(killed, ["shutdown"], 1, 2)).toEqual(INTERRUPTED);
    expect(end(failed, ["cancelled"], 1, 2)).toEqual(STOP);
    expect(end(failed, ["time_limit"], 1, 2)).toEqual(TIME_OUT);
  });

  test("of a thread that went without being told to: a failure like others", () => {
    expect(end(killed, [])).toMatchObject({
      event: "fail",
      errorMessage: expect.stringMatching(/^RunnerGone: /) as string,
    });
    expect(end(abandoned, [], 1, 2)).toMatchObject({ event: "retry" });
  });
});
