import { describe, expect, test } from "vitest";
import type { Job } from "./job.js";
import { MAX_ERROR_CHARS, MAX_REQUEST_ID_CHARS } from "./limits.js";
import {
  ALL_STATUSES,
  allows,
  isTerminal,
  TRANSITIONS,
  type JobEvent,
  type Status,
} from "./state.js";
import { eventWhenLost, newlyQueued, owns, transition, type Change } from "./transition.js";

const NOW_MS = 1_000_000;
const WORKER = "worker-00000001";
const EVENTS = Object.keys(TRANSITIONS) as JobEvent[];

/** A change for every event of the table; the compiler misses none. */
const CHANGES: { readonly [E in JobEvent]: Change & { readonly event: E } } = {
  claim: { event: "claim", workerId: "worker-00000002" },
  cancel: { event: "cancel" },
  expire: { event: "expire", errorMessage: "WaitTimeout: x" },
  reject: { event: "reject", errorMessage: "UnknownTask: x" },
  succeed: { event: "succeed" },
  fail: { event: "fail", errorMessage: "Error: x" },
  time_out: { event: "time_out", errorMessage: "TimeLimit: x" },
  stop: { event: "stop" },
  retry: { event: "retry", errorMessage: "Error: x", delayMs: 500 },
  release: { event: "release" },
  strand: { event: "strand", errorMessage: "WorkerLost: x" },
  rescue: { event: "rescue", errorMessage: "WorkerLost: x" },
  bury: { event: "bury" },
};

function jobIn(status: Status, given: Partial<Job> = {}): Job {
  const queued = newlyQueued(
    { jobId: "0".repeat(26), task: "echo", schemaVersion: 1, payloadJson: "{}", maxAttempts: 3 },
    NOW_MS - 1_000,
  );
  if (status === "queued") return { ...queued, ...given };
  const running = {
    ...queued,
    status,
    attempt: 1,
    workerId: WORKER,
    startedAtMs: NOW_MS - 500,
    lastHeartbeatMs: NOW_MS - 100,
  };
  return { ...running, finishedAtMs: isTerminal(status) ? NOW_MS - 50 : null, ...given };
}

describe("state x operation", () => {
  const matrix = ALL_STATUSES.flatMap((status) => EVENTS.map((event) => [status, event] as const));
  test.each(matrix)("%s, %s", (status, event) => {
    const job = Object.freeze(jobIn(status));
    const after = transition(job, CHANGES[event], NOW_MS);
    if (!allows(status, event)) {
      expect(after).toBeNull();
      return;
    }
    expect(after?.status).toBe(TRANSITIONS[event].to);
    expect(after?.finishedAtMs).toBe(isTerminal(TRANSITIONS[event].to) ? NOW_MS : null);
    const said = CHANGES[event];
    expect(after?.errorMessage).toBe("errorMessage" in said ? said.errorMessage : null);
    expect(after?.workerId).toBe(said.event === "claim" ? said.workerId : job.workerId);
  });
});

describe("claim", () => {
  test("counts the attempt, takes the job over, clears the last attempt's message", () => {
    const job = jobIn("queued", { attempt: 1, errorMessage: "Error: x", workerId: WORKER });
    expect(transition(job, CHANGES.claim, NOW_MS)).toEqual({
      ...job,
      status: "running",
      attempt: 2,
      workerId: "worker-00000002",
      startedAtMs: NOW_MS,
      lastHeartbeatMs: NOW_MS,
      errorMessage: null,
    });
  });

  test("not before the job is due, and not beyond its attempts", () => {
    const due = jobIn("queued", { runAtMs: NOW_MS });
    expect(transition(due, CHANGES.claim, NOW_MS - 1)).toBeNull();
    expect(transition(due, CHANGES.claim, NOW_MS)?.status).toBe("running");
    expect(transition(jobIn("queued", { attempt: 3 }), CHANGES.claim, NOW_MS)).toBeNull();
  });
});

describe("back to the queue", () => {
  test("retry: due after the pause; a negative pause is none", () => {
    expect(transition(jobIn("running"), CHANGES.retry, NOW_MS)).toMatchObject({
      status: "queued",
      attempt: 1,
      runAtMs: NOW_MS + 500,
      errorMessage: "Error: x",
    });
    const early = transition(jobIn("running"), { ...CHANGES.retry, delayMs: -9 }, NOW_MS);
    expect(early?.runAtMs).toBe(NOW_MS);
  });

  test("release: the attempt is given back, its place in the line stays", () => {
    const job = jobIn("running");
    expect(transition(job, CHANGES.release, NOW_MS)).toEqual({
      ...job,
      status: "queued",
      attempt: 0,
    });
  });

  test("rescue: due now", () => {
    expect(transition(jobIn("running"), CHANGES.rescue, NOW_MS)?.runAtMs).toBe(NOW_MS);
  });

  test("retry and rescue only while attempts are left; release always", () => {
    const last = jobIn("running", { attempt: 3 });
    expect(transition(last, CHANGES.retry, NOW_MS)).toBeNull();
    expect(transition(last, CHANGES.rescue, NOW_MS)).toBeNull();
    expect(transition(last, CHANGES.release, NOW_MS)?.attempt).toBe(2);
  });

  test("never after a request to cancel: it is cancelled instead, attempts or not", () => {
    for (const attempt of [1, 3])
      for (const event of ["retry", "release", "rescue"] as const) {
        const job = jobIn("running", { attempt, cancelRequestedAtMs: NOW_MS - 10 });
        expect(transition(job, CHANGES[event], NOW_MS)).toEqual({
          ...job,
          status: "cancelled",
          finishedAtMs: NOW_MS,
        });
      }
  });

  test("an end by the owner stands after a request to cancel", () => {
    const job = jobIn("running", { cancelRequestedAtMs: NOW_MS - 10 });
    expect(transition(job, CHANGES.succeed, NOW_MS)?.status).toBe("succeeded");
    expect(transition(job, CHANGES.fail, NOW_MS)?.status).toBe("failed");
  });
});

test("a lost worker's job is buried, rescued or stranded", () => {
  expect(eventWhenLost(jobIn("running"))).toBe("rescue");
  expect(eventWhenLost(jobIn("running", { attempt: 3 }))).toBe("strand");
  expect(eventWhenLost(jobIn("running", { cancelRequestedAtMs: 1 }))).toBe("bury");
});

test("an owner is worker, attempt and a running job", () => {
  const held = { jobId: "0".repeat(26), workerId: WORKER, attempt: 1 };
  expect(owns(jobIn("running"), held)).toBe(true);
  expect(owns(jobIn("running"), { ...held, attempt: 2 })).toBe(false);
  expect(owns(jobIn("running"), { ...held, workerId: "worker-00000009" })).toBe(false);
  for (const status of ALL_STATUSES)
    expect(owns(jobIn(status, { workerId: WORKER, attempt: 1 }), held)).toBe(status === "running");
});

describe("texts", () => {
  test("every message is cleaned and bounded", () => {
    const hostile = `a\0${"x".repeat(MAX_ERROR_CHARS)}\ud83d`;
    for (const event of EVENTS) {
      const change = CHANGES[event];
      if (!("errorMessage" in change)) continue;
      const job = jobIn(TRANSITIONS[event].from);
      const after = transition(job, { ...change, errorMessage: hostile }, NOW_MS);
      expect(after?.errorMessage).toMatch(/^a\ufffdx+…$/);
      expect(after?.errorMessage).toHaveLength(MAX_ERROR_CHARS);
    }
  });

  test("so is the caller's request id", () => {
    const given = { jobId: "0".repeat(26), task: "echo", schemaVersion: 1, payloadJson: "{}" };
    expect(newlyQueued({ ...given, requestId: "a\0b" }, 0).requestId).toBe("a\ufffdb");
    expect(newlyQueued({ ...given, requestId: "r".repeat(999) }, 0).requestId).toHaveLength(
      MAX_REQUEST_ID_CHARS,
    );
    expect(newlyQueued({ ...given, requestId: null }, 0).requestId).toBeNull();
  });
});
