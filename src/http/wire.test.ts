import { describe, expect, test } from "vitest";
import { job, NOW_MS, WIRE_ID } from "../../test/http/scripted-engine.js";
import { ALL_STATUSES } from "../job/state.js";
import { ALL_STATES, FAULTS, jobJson, STATES, statusOf, successJson } from "./wire.js";

describe("states", () => {
  test("the words are the published ones, and each leads back to its status", () => {
    expect(STATES).toEqual({
      queued: "pending",
      running: "running",
      succeeded: "done",
      failed: "failed",
      timed_out: "timeout",
      cancelled: "cancelled",
    });
    expect(ALL_STATES.map(statusOf)).toEqual(ALL_STATUSES);
    expect(["queued", "succeeded", "timed_out", "constructor", ""].map(statusOf)).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });
});

test("the published codes have their sentence and their HTTP status", () => {
  const rows = Object.values(FAULTS).map(({ code, msg, http }) => [code, msg, http]);
  expect(rows).toEqual(
    expect.arrayContaining([
      [2, "model run session failed", 500],
      [3, "model input empty", 400],
      [4, "model run timeout", 504],
      [50, "decode json error", 400],
      [51, "invalid input", 422],
      [60, "unsupported media type", 415],
      [61, "request entity too large", 413],
      [62, "method not allowed", 405],
      [63, "not found", 404],
      [64, "internal server error", 500],
      [65, "service not ready", 503],
      [401, "unauthorized", 401],
      [429, "too many requests", 429],
    ]),
  );
  expect(new Set(rows.map(([code]) => code)).size).toBe(rows.length);
});

describe("a job on the wire", () => {
  const read = (changes: Parameters<typeof job>[0], nowMs = NOW_MS): unknown =>
    JSON.parse(jobJson(job(changes), nowMs));

  test("waiting: what is not known yet is left out", () => {
    expect(read({})).toEqual({
      job_id: WIRE_ID,
      state: "pending",
      elapsed_ms: 1_500,
      status: "queued",
      task: "ocr",
      attempt: 0,
      max_attempts: 1,
      priority: 0,
      created_at: "2026-01-02T03:04:03.500Z",
      req_id: "r-1",
    });
  });

  test("running: times, progress as it was reported, the request to cancel", () => {
    expect(
      read({
        status: "running",
        attempt: 2,
        startedAtMs: NOW_MS - 500,
        cancelRequestedAtMs: NOW_MS,
        progressJson: '{"page":3}',
        errorMessage: "Error: the attempt before",
        planId: "01ARZ3NDEKTSV4RRFFQ69G5FAW",
        phase: "apply",
      }),
    ).toMatchObject({
      state: "running",
      started_at: "2026-01-02T03:04:04.500Z",
      cancel_requested: true,
      progress: { page: 3 },
      reason: "Error: the attempt before",
      plan_id: "plan_01ARZ3NDEKTSV4RRFFQ69G5FAW",
      phase: "apply",
    });
  });

  test("ended: elapsed_ms stops at the end, and error says why it failed", () => {
    for (const status of ["failed", "timed_out"] as const)
      expect(
        read({ status, finishedAtMs: NOW_MS - 1_000, errorMessage: "Error: out of paper" }),
      ).toMatchObject({
        state: STATES[status],
        elapsed_ms: 500,
        finished_at: "2026-01-02T03:04:04.000Z",
        error: "Error: out of paper",
      });
  });

  test("tried again: how the attempts before failed, and the key that it has", () => {
    const attemptErrors = [
      {
        attempt: 1,
        workerId: "worker-0000aaaa",
        atMs: NOW_MS - 1_000,
        errorMessage: "Error: out of paper",
      },
    ];
    expect(read({ attempt: 2, attemptErrors, idempotencyKey: "k" })).toMatchObject({
      attempt_errors: [
        {
          attempt: 1,
          worker_id: "worker-0000aaaa",
          at: "2026-01-02T03:04:04.000Z",
          error: "Error: out of paper",
        },
      ],
      idempotency_key: "k",
    });
  });

  test("a ledger whose clock is ahead makes no time negative", () => {
    expect(read({}, NOW_MS - 60_000)).toMatchObject({ elapsed_ms: 0 });
  });
});

test("a result is embedded as it was recorded, and odd ids are escaped", () => {
  expect(successJson('"\n', '{"n":1.0}')).toBe(
    '{"req_id":"\\"\\n","code":0,"msg":"success","data":{"n":1.0}}',
  );
  expect(successJson(null, "null")).toContain('"req_id":null');
});
