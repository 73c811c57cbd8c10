import type { FastifyInstance } from "fastify";
import { afterEach, describe, expect, test } from "vitest";
import {
  appOn,
  job,
  JOB_ID,
  NOW_MS,
  registry,
  WIRE_ID,
} from "../../../test/http/scripted-engine.js";
import type { Engine, RetryResult, SubmitRequest } from "../../engine/api.js";
import { LedgerError } from "../../job/errors.js";
import type { ListQuery } from "../../ledger/ledger.js";

const apps: FastifyInstance[] = [];
const on = (...given: Parameters<typeof appOn>): FastifyInstance => {
  const app = appOn(...given);
  apps.push(app);
  return app;
};
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

/** An engine that accepts, and what it was asked for. */
function accepting(names: readonly string[] = ["ocr"]): {
  script: Partial<Engine>;
  asked: SubmitRequest[];
} {
  const asked: SubmitRequest[] = [];
  return {
    asked,
    script: {
      tasks: registry(names),
      submit: async (request) => {
        asked.push(request);
        return { kind: "accepted", job: job(), repeated: false };
      },
    },
  };
}

const post = (app: FastifyInstance, payload: unknown, headers: Record<string, string> = {}) =>
  app.inject({
    method: "POST",
    url: "/jobs",
    headers: { "content-type": "application/json", ...headers },
    payload: JSON.stringify(payload),
  });

describe("POST /jobs", () => {
  test("202 to the letter", async () => {
    const { script } = accepting();
    const reply = await post(on(script), { img_data: "aGVsbG8=", req_id: "r1" });
    expect(reply.statusCode).toBe(202);
    expect(reply.headers).toMatchObject({
      "content-type": "application/json; charset=utf-8",
      "cache-control": "no-store",
      "x-request-id": "r1",
      location: `/jobs/${WIRE_ID}`,
    });
    expect(reply.json()).toEqual({
      job_id: WIRE_ID,
      state: "pending",
      poll_url: `/jobs/${WIRE_ID}`,
      result_url: `/jobs/${WIRE_ID}/result`,
    });
  });

  test("a bare input goes to the only task, without its req_id", async () => {
    const { script, asked } = accepting();
    await post(on(script), { img_data: "x", req_id: "r1" });
    expect(asked).toEqual([{ task: "ocr", input: { img_data: "x" }, requestId: "r1" }]);
  });

  test("or to the default one among several", async () => {
    const { script, asked } = accepting(["ocr", "asr"]);
    await post(on(script, { defaultTask: "asr" }), { a: 1 });
    expect(asked).toEqual([{ task: "asr", input: { a: 1 }, requestId: "made-id" }]);
    const refused = await post(on(script), { a: 1 });
    expect(refused.statusCode).toBe(422);
    expect(refused.json()).toMatchObject({ known: ["ocr", "asr"] });
  });

  test("the full form carries options", async () => {
    const { script, asked } = accepting();
    const app = on(script);
    await post(app, {
      task: "ocr",
      input: { task: "inner" },
      req_id: "r",
      priority: -5,
      delay_ms: 100,
      max_attempts: 3,
      timeout_ms: 1_000,
    });
    await post(app, { task: "ocr" });
    await post(app, { task: "ocr", input: null });
    expect(asked).toEqual([
      {
        task: "ocr",
        input: { task: "inner" },
        requestId: "r",
        priority: -5,
        delayMs: 100,
        maxAttempts: 3,
        timeoutMs: 1_000,
      },
      { task: "ocr", input: {}, requestId: "made-id" },
      { task: "ocr", input: null, requestId: "made-id" },
    ]);
  });

  test("an input whose own task is no string is still bare", async () => {
    const { script, asked } = accepting();
    await post(on(script), { task: { kind: "translate" } });
    expect(asked).toMatchObject([{ task: "ocr", input: { task: { kind: "translate" } } }]);
  });

  test("an input with a string task of its own is told where to put it", async () => {
    const reply = await post(on(accepting().script), { task: "translate", text: "hi" });
    expect(reply.statusCode).toBe(422);
    expect(reply.json()).toEqual({
      error: "unknown task: translate",
      code: 51,
      detail: expect.stringContaining('goes into "input"') as unknown,
      known: ["ocr"],
    });
  });

  test("unknown and wrong options are named, with the known ones", async () => {
    const reply = await post(on(accepting().script), {
      task: "ocr",
      prio: 1,
      priority: 1.5,
      max_attempts: 0,
      timeout_ms: "5",
      delay_ms: -1,
    });
    expect(reply.statusCode).toBe(422);
    const { issues, known, error } = reply.json<{
      error: string;
      issues: { path: string }[];
      known: string[];
    }>();
    expect(error).toBe("invalid input");
    expect(issues.map(({ path }) => path).sort()).toEqual([
      "delay_ms",
      "max_attempts",
      "prio",
      "priority",
      "timeout_ms",
    ]);
    expect(known).toEqual([
      "task",
      "input",
      "req_id",
      "priority",
      "delay_ms",
      "run_at",
      "max_attempts",
      "timeout_ms",
      "idempotency_key",
    ]);
  });

  test.each([
    ["body before header", { req_id: "body" }, { "x-request-id": "header" }, "body", "body"],
    ["header before made", {}, { "x-request-id": "header" }, "header", "header"],
    ["made", {}, {}, "made-id", "made-id"],
    ["a header nobody could echo", {}, { "x-request-id": "x".repeat(201) }, "made-id", "made-id"],
    ["not header-safe", { req_id: "ä\r\nX: 1" }, {}, "ä\r\nX: 1", "made-id"],
    ["unstorable", { req_id: "\0\ud800" }, {}, "\uFFFD\uFFFD", "made-id"],
  ])("request id: %s", async (_, body, headers, recorded, header) => {
    const { script, asked } = accepting();
    const reply = await post(on(script), body, headers);
    expect(reply.statusCode).toBe(202);
    expect(asked[0]?.requestId).toBe(recorded);
    expect(reply.headers["x-request-id"]).toBe(header);
  });

  test.each([
    [
      { kind: "full", limit: 16, retryAfterS: 7 },
      429,
      { error: "async queue full (max 16)", code: 429 },
      "7",
    ],
    [
      { kind: "not_ready", reason: "draining" },
      503,
      { error: "service not ready", code: 65, detail: "draining" },
      "5",
    ],
    [
      { kind: "invalid", empty: true, issues: [{ path: "img_data", message: "Required" }] },
      400,
      {
        error: "model input empty",
        code: 3,
        detail: "img_data: Required",
        issues: [{ path: "img_data", message: "Required" }],
      },
      undefined,
    ],
    [
      { kind: "invalid", empty: false, issues: [{ path: "", message: "Expected object" }] },
      422,
      {
        error: "invalid input",
        code: 51,
        detail: "Expected object",
        issues: [{ path: "", message: "Expected object" }],
      },
      undefined,
    ],
  ] as const)("refusal %j", async (refusal, status, body, retryAfter) => {
    const reply = await post(on({ submit: async () => refusal }), {});
    expect(reply.statusCode).toBe(status);
    expect(reply.json()).toEqual(body);
    expect(reply.headers["retry-after"]).toBe(retryAfter);
  });

  test("a flood of complaints is cut", async () => {
    const issues = Array.from({ length: 500 }, (_, at) => ({ path: `a.${at}`, message: "bad" }));
    const reply = await post(
      on({ submit: async () => ({ kind: "invalid", empty: false, issues }) }),
      {},
    );
    const { issues: shown, detail } = reply.json<{ issues: unknown[]; detail: string }>();
    expect(shown).toHaveLength(20);
    expect(detail).toMatch(/; and 480 more$/);
  });

  test("a ledger that can't record: 503, with Retry-After only where trying again can help", async () => {
    const failing = (code: "ledger_unavailable" | "ledger_newer") =>
      post(
        on({
          submit: async () => {
            throw new LedgerError(code, "postgres://user:secret@db");
          },
        }),
        {},
      );
    const down = await failing("ledger_unavailable");
    expect(down.statusCode).toBe(503);
    expect(down.headers["retry-after"]).toBe("5");
    expect(down.json()).toEqual({
      error: "service not ready",
      code: 65,
      detail: "the ledger can't be reached",
    });
    const newer = await failing("ledger_newer");
    expect(newer.statusCode).toBe(503);
    expect(newer.headers["retry-after"]).toBeUndefined();
    expect(newer.body).not.toContain("secret");
  });
});

describe("GET /jobs/{id}", () => {
  test("both spellings of the id", async () => {
    const asked: string[] = [];
    const app = on({
      get: async (jobId) => {
        asked.push(jobId);
        return job();
      },
    });
    for (const id of [WIRE_ID, JOB_ID]) {
      const reply = await app.inject(`/jobs/${id}`);
      expect(reply.json()).toMatchObject({ job_id: WIRE_ID, state: "pending", elapsed_ms: 1_500 });
    }
    expect(asked).toEqual([JOB_ID, JOB_ID]);
  });

  test.each(["nonexistent", WIRE_ID, "a%20b%2F%22", "x".repeat(900)])(
    "404 repeats the id as given: %.30s",
    async (id) => {
      const app = on({ get: async () => null, wait: async () => null, result: async () => null });
      for (const below of ["", "/wait?timeout=1", "/result"]) {
        const reply = await app.inject(`/jobs/${id}${below}`);
        expect(reply.statusCode).toBe(404);
        expect(reply.json()).toEqual({
          error: `job not found: ${decodeURIComponent(id)}`,
          code: 63,
        });
      }
    },
  );
});

describe("GET /jobs/{id}/wait", () => {
  test.each([
    ["", 30_000],
    ["?timeout=", 30_000],
    ["?timeout=nonsense", 30_000],
    ["?timeout=0", 30_000],
    ["?timeout=-5", 30_000],
    ["?timeout=1&timeout=2", 30_000],
    ["?timeout=NaN", 30_000],
    ["?timeout=0.2", 1],
    ["?timeout=250", 250],
    ["?timeout=999999999", 300_000],
    ["?timeout=Infinity", 300_000],
    ["?other=1&timeout=250", 250],
  ])("%s waits %i ms for a change", async (query, timeoutMs) => {
    const asked: unknown[] = [];
    const app = on({
      wait: async (jobId, { signal, ...options }) => {
        asked.push({ jobId, ...options, aborted: signal?.aborted });
        return job({ status: "running" });
      },
    });
    const reply = await app.inject(`/jobs/${WIRE_ID}/wait${query}`);
    expect(reply.json()).toMatchObject({ job_id: WIRE_ID, state: "running" });
    expect(asked).toEqual([{ jobId: JOB_ID, timeoutMs, until: "change", aborted: false }]);
  });
});

describe("GET /jobs/{id}/result", () => {
  test("the envelope around the recorded text, with the job's own req_id", async () => {
    const app = on({
      result: async () => ({ job: job({ status: "succeeded" }), resultJson: '{"n": 1.0}' }),
    });
    const reply = await app.inject({
      url: `/jobs/${WIRE_ID}/result`,
      headers: { "x-request-id": "other" },
    });
    expect(reply.statusCode).toBe(200);
    expect(reply.body).toBe('{"req_id":"r-1","code":0,"msg":"success","data":{"n": 1.0}}');
    expect(reply.headers["x-request-id"]).toBe("other");
  });

  test.each([
    ["queued", null, "pending", undefined],
    ["running", null, "running", undefined],
    ["failed", "Error: no", "failed", "Error: no"],
    [
      "timed_out",
      "WaitTimeout: worker wait timeout",
      "timeout",
      "WaitTimeout: worker wait timeout",
    ],
    ["cancelled", null, "cancelled", "cancelled"],
  ] as const)("409 while %s", async (status, errorMessage, state, reason) => {
    const app = on({
      result: async () => ({ job: job({ status, errorMessage }), resultJson: null }),
    });
    const reply = await app.inject(`/jobs/${WIRE_ID}/result`);
    expect(reply.statusCode).toBe(409);
    expect(reply.json()).toEqual({
      error: `job not finished (state: ${state})`,
      code: 409,
      ...(reason === undefined ? {} : { reason }),
    });
  });
});

describe("DELETE /jobs/{id}", () => {
  test.each([
    ["cancelled", "cancelled", 200, { job_id: WIRE_ID, state: "cancelled" }],
    ["requested", "running", 202, { job_id: WIRE_ID, state: "running" }],
    ["terminal", "succeeded", 409, { error: "job already finished (state: done)", code: 409 }],
  ] as const)("%s", async (kind, status, code, body) => {
    const app = on({ cancel: async () => ({ kind, job: job({ status }) }) });
    // Clients like to send a content type, or a body, with everything.
    const reply = await app.inject({
      method: "DELETE",
      url: `/jobs/${WIRE_ID}`,
      headers: { "content-type": "application/json" },
    });
    expect(reply.statusCode).toBe(code);
    expect(reply.json()).toEqual(body);
  });

  test("unknown, by any spelling", async () => {
    const app = on({ cancel: async () => ({ kind: "unknown" }) });
    for (const id of [WIRE_ID, "nonsense"]) {
      const reply = await app.inject({ method: "DELETE", url: `/jobs/${id}` });
      expect(reply.statusCode).toBe(404);
      expect(reply.json()).toEqual({ error: `job not found: ${id}`, code: 63 });
    }
  });
});

describe("POST /jobs, once for all", () => {
  test.each<[string, object, Record<string, string>]>([
    ["the body", { task: "ocr", input: {}, idempotency_key: "k 1" }, {}],
    ["a header", { img: 1 }, { "Idempotency-Key": "k 1" }],
    ["a quoted header", { task: "ocr" }, { "idempotency-key": '"k 1"' }],
    ["both", { task: "ocr", idempotency_key: "k 1" }, { "idempotency-key": "k 1" }],
  ])("takes the key from %s", async (_, body, headers) => {
    const { script, asked } = accepting();
    const reply = await post(on(script), body, headers);
    expect(reply.statusCode).toBe(202);
    expect(asked).toMatchObject([{ idempotencyKey: "k 1" }]);
    expect(reply.headers["idempotent-replayed"]).toBeUndefined();
  });

  test("leaves it in a bare input, to which it belongs", async () => {
    const { script, asked } = accepting();
    await post(on(script), { idempotency_key: "k" });
    expect(asked).toEqual([{ task: "ocr", input: { idempotency_key: "k" }, requestId: "made-id" }]);
  });

  test("answers a repeated one with its job's present state", async () => {
    const app = on({
      submit: async () => ({ kind: "accepted", job: job({ status: "succeeded" }), repeated: true }),
    });
    const reply = await post(app, { task: "ocr", idempotency_key: "k" });
    expect([reply.statusCode, reply.headers["idempotent-replayed"]]).toEqual([202, "true"]);
    expect(reply.headers.location).toBe(`/jobs/${WIRE_ID}`);
    expect(reply.json()).toMatchObject({ job_id: WIRE_ID, state: "done" });
  });

  test("422 for a key of another request", async () => {
    const app = on({ submit: async () => ({ kind: "key_conflict", key: "k", jobId: JOB_ID }) });
    const reply = await post(app, { task: "ocr", idempotency_key: "k" });
    expect(reply.statusCode).toBe(422);
    expect(reply.json()).toEqual({
      error: "idempotency key conflict",
      code: 422,
      detail: `"k" belongs to ${WIRE_ID}, of another task or input`,
    });
  });

  test.each<[object, Record<string, string>, string]>([
    [{ idempotency_key: "a" }, { "idempotency-key": "b" }, "idempotency_key"],
    [{ idempotency_key: "" }, {}, "idempotency_key"],
    [{ idempotency_key: 5 }, {}, "idempotency_key"],
    [{}, { "idempotency-key": "x".repeat(256) }, "Idempotency-Key"],
  ])("422 for %j with %j", async (body, headers, path) => {
    const { script, asked } = accepting();
    const reply = await post(on(script), { task: "ocr", ...body }, headers);
    expect(reply.statusCode).toBe(422);
    expect(reply.json()).toMatchObject({ error: "invalid input", issues: [{ path }] });
    expect(asked).toEqual([]);
  });
});

describe("POST /jobs, for later", () => {
  test("run_at is a time of any zone; what is past is now", async () => {
    const { script, asked } = accepting();
    const app = on(script);
    await post(app, { task: "ocr", run_at: "2026-01-03T00:00:00+01:00" });
    await post(app, { task: "ocr", run_at: "0001-01-01T00:00:00Z" });
    expect(asked.map(({ runAtMs }) => runAtMs)).toEqual([Date.UTC(2026, 0, 2, 23), 0]);
  });

  test.each([
    [{ run_at: "2030-01-01T00:00:00" }, /zone|date-time/],
    [{ run_at: "2030-02-30T00:00:00Z" }, /zone|date-time/],
    [{ run_at: 5 }, /string/],
    [{ run_at: "2030-01-01T00:00:00Z", delay_ms: 0 }, /together with delay_ms/],
    [{ run_at: "9999-01-01T00:00:00Z" }, /at most a year/],
  ])("422 for %j", async (body, message) => {
    const { script, asked } = accepting();
    const reply = await post(on(script), { task: "ocr", ...body });
    expect(reply.statusCode).toBe(422);
    expect(reply.json()).toMatchObject({
      issues: [{ path: "run_at", message: expect.stringMatching(message) as string }],
    });
    expect(asked).toEqual([]);
  });
});

describe("POST /jobs/{id}/retry", () => {
  const retrying = (outcome: RetryResult) => {
    const app = on({ retry: async () => outcome });
    // With a content type and without a body, as some clients send everything.
    const headers = { "content-type": "application/json" };
    return app.inject({ method: "POST", url: `/jobs/${WIRE_ID}/retry`, headers });
  };

  test("answers like a submit", async () => {
    const reply = await retrying({ kind: "accepted", job: job(), repeated: false });
    expect([reply.statusCode, reply.headers.location]).toEqual([202, `/jobs/${WIRE_ID}`]);
    expect(reply.json()).toEqual({
      job_id: WIRE_ID,
      state: "pending",
      poll_url: `/jobs/${WIRE_ID}`,
      result_url: `/jobs/${WIRE_ID}/result`,
    });
  });

  test.each<[RetryResult, number, object]>([
    [{ kind: "unknown" }, 404, { error: `job not found: ${WIRE_ID}`, code: 63 }],
    [
      { kind: "not_finished", job: job({ status: "running" }) },
      409,
      { error: "job not finished (state: running)", code: 409 },
    ],
    [
      { kind: "payload_gone", job: job({ status: "failed" }) },
      409,
      {
        error: `job's input is gone: ${WIRE_ID}`,
        code: 409,
        detail: "a store in memory forgets the input of a job that has ended: submit it anew",
      },
    ],
    [
      { kind: "of_plan", job: job({ planId: JOB_ID, phase: "apply" }) },
      409,
      {
        error: "a plan's job can't be retried",
        code: 409,
        detail: `a plan runs one phase at a time: run jobtable plan apply plan_${JOB_ID} instead`,
      },
    ],
    [
      { kind: "full", limit: 16, retryAfterS: 3 },
      429,
      { error: "async queue full (max 16)", code: 429 },
    ],
    [
      { kind: "not_ready", reason: "shutting down" },
      503,
      { error: "service not ready", code: 65, detail: "shutting down" },
    ],
    [
      { kind: "key_conflict", key: "k", jobId: JOB_ID },
      422,
      {
        error: "idempotency key conflict",
        code: 422,
        detail: `"k" belongs to ${WIRE_ID}, of another task or input`,
      },
    ],
  ])("%j", async (outcome, status, body) => {
    const reply = await retrying(outcome);
    expect(reply.statusCode).toBe(status);
    expect(reply.json()).toEqual(body);
    expect(reply.headers["retry-after"] !== undefined).toBe(status === 429 || status === 503);
  });
});

describe("POST /jobs/{id}/retry, once for all", () => {
  const retryWith = async (header: string) => {
    const asked: unknown[] = [];
    const app = on({
      retry: async (...given) => {
        asked.push(given);
        return { kind: "accepted", job: job({ status: "running" }), repeated: true };
      },
    });
    const headers = { "idempotency-key": header };
    const reply = await app.inject({ method: "POST", url: `/jobs/${WIRE_ID}/retry`, headers });
    return { reply, asked };
  };

  test.each(["k 1", '"k 1"'])("takes the key %s, and says that it was used before", async (key) => {
    const { reply, asked } = await retryWith(key);
    expect(asked).toEqual([[JOB_ID, { idempotencyKey: "k 1" }]]);
    expect([reply.statusCode, reply.headers["idempotent-replayed"]]).toEqual([202, "true"]);
    expect(reply.json()).toMatchObject({ job_id: WIRE_ID, state: "running" });
  });

  test.each([[""], ["x".repeat(256)]])("422 for %j", async (key) => {
    const { reply, asked } = await retryWith(key);
    expect(reply.statusCode).toBe(422);
    const issues = [{ path: "Idempotency-Key" }];
    expect(reply.json()).toMatchObject({ error: "invalid input", issues });
    expect(asked).toEqual([]);
  });
});

describe("GET /jobs", () => {
  const listing = (): { app: FastifyInstance; asked: ListQuery[] } => {
    const asked: ListQuery[] = [];
    const app = on({
      list: async (query) => {
        asked.push(query);
        return {
          jobs: [job(), job({ status: "failed", finishedAtMs: NOW_MS })],
          nextCursor: JOB_ID,
        };
      },
    });
    return { app, asked };
  };

  test("a page, and where the next begins", async () => {
    const { app } = listing();
    expect((await app.inject("/jobs")).json()).toMatchObject({
      jobs: [{ state: "pending" }, { state: "failed" }],
      next_cursor: WIRE_ID,
    });
    const last = on({ list: async () => ({ jobs: [] }) });
    expect((await last.inject("/jobs")).json()).toEqual({ jobs: [] });
  });

  test.each([
    ["", { limit: 50 }],
    ["?state=&task=&limit=&cursor=", { limit: 50 }],
    ["?state=pending,timeout", { limit: 50, statuses: ["queued", "timed_out"] }],
    [`?limit=200&task=ocr&cursor=${WIRE_ID}`, { limit: 200, task: "ocr", cursor: JOB_ID }],
    [`?cursor=${JOB_ID}`, { limit: 50, cursor: JOB_ID }],
    [`?plan=plan_${JOB_ID}`, { limit: 50, planId: JOB_ID }],
    [`?plan=${JOB_ID}`, { limit: 50, planId: JOB_ID }],
  ])("%s", async (query, expected) => {
    const { app, asked } = listing();
    expect((await app.inject(`/jobs${query}`)).statusCode).toBe(200);
    expect(asked).toEqual([expected]);
  });

  test.each([
    ["?state=queued", "state"],
    ["?state=pending,", "state"],
    ["?limit=0", "limit"],
    ["?limit=201", "limit"],
    ["?limit=ten", "limit"],
    ["?limit=1&limit=2", "limit"],
    ["?cursor=nonsense", "cursor"],
    [`?plan=${WIRE_ID}`, "plan"],
    ["?stat=failed", ""],
  ])("%s is refused", async (query, path) => {
    const { app, asked } = listing();
    const reply = await app.inject(`/jobs${query}`);
    expect(reply.statusCode).toBe(422);
    const body = reply.json<{ error: string; issues: { path: string }[] }>();
    expect(body.error).toBe("invalid input");
    expect(body.issues[0]?.path).toBe(path);
    expect(asked).toEqual([]);
  });
});
