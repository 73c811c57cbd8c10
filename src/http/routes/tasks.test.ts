import type { FastifyInstance } from "fastify";
import { afterEach, describe, expect, test } from "vitest";
import { appOn, registry } from "../../../test/http/scripted-engine.js";
import type { SyncOutcome, SyncRequest } from "../../engine/api.js";

const apps: FastifyInstance[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

function running(
  outcome: SyncOutcome,
  names: readonly string[] = ["ocr"],
): { app: FastifyInstance; asked: SyncRequest[] } {
  const asked: SyncRequest[] = [];
  const app = appOn({
    tasks: registry(names),
    run: async (request) => {
      asked.push(request);
      return outcome;
    },
  });
  apps.push(app);
  return { app, asked };
}

const post = (app: FastifyInstance, url: string, payload: unknown) =>
  app.inject({
    method: "POST",
    url,
    headers: { "content-type": "application/json" },
    payload: JSON.stringify(payload),
  });

describe("POST /tasks/{task}", () => {
  test("success: the envelope around the result's own text", async () => {
    const { app, asked } = running({ kind: "done", resultJson: '{"ok": true}' });
    const reply = await post(app, "/tasks/ocr", { img: "x", task: "not an option", req_id: "s-1" });
    expect(reply.statusCode).toBe(200);
    expect(reply.body).toBe('{"req_id":"s-1","code":0,"msg":"success","data":{"ok": true}}');
    expect(reply.headers).toMatchObject({
      "content-type": "application/json; charset=utf-8",
      "x-request-id": "s-1",
      "cache-control": "no-store",
    });
    expect(asked).toMatchObject([
      { task: "ocr", input: { img: "x", task: "not an option" }, requestId: "s-1" },
    ]);
  });

  test.each<[SyncOutcome, number, Record<string, unknown>, string | undefined]>([
    [
      { kind: "failed", errorMessage: "Error: no" },
      500,
      { code: 2, msg: "model run session failed", detail: "Error: no" },
      undefined,
    ],
    [
      { kind: "timeout", limitMs: 500 },
      504,
      {
        code: 4,
        msg: "model run timeout",
        detail: "the limit is 500 ms, the wait for a worker included",
      },
      undefined,
    ],
    [
      { kind: "full", limit: 2, retryAfterS: 99 },
      429,
      { code: 429, msg: "too many requests" },
      "60",
    ],
    [
      { kind: "not_ready", reason: "draining" },
      503,
      { code: 65, msg: "service not ready", detail: "draining" },
      "5",
    ],
    [
      { kind: "cancelled" },
      503,
      { code: 65, msg: "service not ready", detail: "the run was stopped" },
      "5",
    ],
    [
      { kind: "invalid", empty: true, issues: [{ path: "img", message: "Required" }] },
      400,
      {
        code: 3,
        msg: "model input empty",
        detail: "img: Required",
        issues: [{ path: "img", message: "Required" }],
      },
      undefined,
    ],
    [
      { kind: "invalid", empty: false, issues: [{ path: "img", message: "Too long" }] },
      422,
      {
        code: 51,
        msg: "invalid input",
        detail: "img: Too long",
        issues: [{ path: "img", message: "Too long" }],
      },
      undefined,
    ],
    [
      { kind: "unknown_task", task: "ocr", known: [] },
      404,
      { code: 63, msg: "not found" },
      undefined,
    ],
  ])("%j", async (outcome, status, body, retryAfter) => {
    const { app } = running(outcome);
    const reply = await post(app, "/tasks/ocr", {});
    expect(reply.statusCode).toBe(status);
    expect(reply.json()).toEqual({ req_id: "made-id", data: null, ...body });
    expect(reply.headers["retry-after"]).toBe(retryAfter);
  });

  test("an unknown task is 404 before its body is looked at", async () => {
    const { app, asked } = running({ kind: "done", resultJson: "1" });
    for (const payload of ["{}", "not json", "x".repeat(2_000)]) {
      const reply = await app.inject({ method: "POST", url: "/tasks/none", payload });
      expect(reply.statusCode).toBe(404);
      expect(reply.json()).toMatchObject({ code: 63 });
    }
    expect((await app.inject("/tasks/none")).statusCode).toBe(404);
    expect(asked).toEqual([]);
  });

  test("any other method is 405, with what would be allowed", async () => {
    const { app } = running({ kind: "done", resultJson: "1" });
    for (const method of ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"] as const) {
      const reply = await app.inject({ method, url: "/tasks/ocr" });
      expect(reply.statusCode).toBe(405);
      expect(reply.headers.allow).toBe("POST");
    }
  });
});

describe("POST /", () => {
  test("runs the only task", async () => {
    const { app, asked } = running({ kind: "done", resultJson: "1" });
    expect((await post(app, "/", { a: 1 })).json()).toMatchObject({ code: 0, data: 1 });
    expect(asked).toMatchObject([{ task: "ocr", input: { a: 1 } }]);
    expect((await app.inject("/")).headers.allow).toBe("POST");
  });

  test("is unknown where there are several, or none", async () => {
    for (const names of [["ocr", "asr"], []]) {
      const { app } = running({ kind: "done", resultJson: "1" }, names);
      const reply = await post(app, "/", {});
      expect(reply.statusCode).toBe(404);
      expect(reply.json()).toMatchObject({ code: 63 });
    }
  });
});
