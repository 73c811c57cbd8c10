import type { FastifyInstance } from "fastify";
import { METHODS } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import {
  appOn,
  job,
  scriptedEngine,
  stillClock,
  WIRE_ID,
} from "../../test/http/scripted-engine.js";
import type { Engine } from "../engine/api.js";
import { LedgerError } from "../job/errors.js";
import type { LogFields, Logger } from "../runtime/logger.js";
import { silentLogger } from "../runtime/logger.js";

const apps: FastifyInstance[] = [];
const on = (...given: Parameters<typeof appOn>): FastifyInstance => {
  const app = appOn(...given);
  apps.push(app);
  return app;
};
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

type Reply = Awaited<ReturnType<FastifyInstance["inject"]>>;

/** What every error reply is: one of two shapes, with the headers of the house. */
function expectOurs(reply: Reply, shape: "envelope" | "job"): void {
  expect(reply.headers).toMatchObject({
    "content-type": "application/json; charset=utf-8",
    "cache-control": "no-store",
    "x-request-id": expect.stringMatching(/./) as unknown,
  });
  const body = reply.json<Record<string, unknown>>();
  if (shape === "envelope")
    expect(body).toMatchObject({
      req_id: expect.any(String) as unknown,
      code: expect.any(Number) as unknown,
      msg: expect.any(String) as unknown,
      data: null,
    });
  else expect(body).toMatchObject({ error: expect.any(String) as unknown });
  expect(body).not.toHaveProperty("statusCode");
  expect(body).not.toHaveProperty("message");
}

const SYNC = "/tasks/ocr";
const JSON_HEADERS = { "content-type": "application/json" };

describe("bad requests never meet a default error", () => {
  const bad: [
    name: string,
    payload: string,
    headers: Record<string, string>,
    status: number,
    code: number,
  ][] = [
    ["no body", "", {}, 400, 50],
    ["no body, but a type", "", JSON_HEADERS, 400, 50],
    ["not JSON", "not json", JSON_HEADERS, 400, 50],
    ["prototype", '{"__proto__":{}}', JSON_HEADERS, 400, 50],
    ["text", "{}", { "content-type": "text/plain" }, 415, 60],
    ["no type", "{}", {}, 415, 60],
    ["a broken type", "{}", { "content-type": "json" }, 415, 60],
    ["nearly JSON", "{}", { "content-type": "application/jsonp" }, 415, 60],
    ["a form", "a=1", { "content-type": "application/x-www-form-urlencoded" }, 415, 60],
    ["too large", JSON.stringify("x".repeat(2_000)), JSON_HEADERS, 413, 61],
    ["gzip", "{}", { ...JSON_HEADERS, "content-encoding": "gzip" }, 415, 60],
    ["null", "null", JSON_HEADERS, 422, 51],
    ["an array", "[]", JSON_HEADERS, 422, 51],
    ["a number", "7", JSON_HEADERS, 422, 51],
    ["a numeric id", '{"req_id":7}', JSON_HEADERS, 422, 51],
  ];
  test.each(bad)("%s", async (_, payload, headers, status, code) => {
    const app = on({});
    for (const [url, shape] of [
      [SYNC, "envelope"],
      ["/", "envelope"],
      ["/jobs", "job"],
    ] as const) {
      const reply = await app.inject({
        method: "POST",
        url,
        headers,
        ...(payload === "" ? {} : { payload }),
      });
      expect(reply.statusCode).toBe(status);
      expectOurs(reply, shape);
      expect(reply.json()).toMatchObject({ code });
      expect(reply.headers.connection).not.toBe("close");
    }
  });

  test.each([
    "application/json; charset=utf-8",
    "application/JSON",
    "application/vnd.api+json;a=b",
  ])("%s is JSON", async (type) => {
    const app = on({ run: async () => ({ kind: "done", resultJson: "1" }) });
    const reply = await app.inject({
      method: "POST",
      url: SYNC,
      headers: { "content-type": type },
      payload: "{}",
    });
    expect(reply.statusCode).toBe(200);
  });

  test.each([
    ["/nope", "envelope"],
    ["/jobsx", "envelope"],
    ["/tasks", "envelope"],
    ["/tasks/", "envelope"],
    ["/tasks/ocr/more", "envelope"],
    ["/%zz", "envelope"],
    ["/tasks/%E0%A4%A", "envelope"],
    [`/tasks/${"x".repeat(5_000)}`, "envelope"],
    ["//", "envelope"],
    ["/constructor", "envelope"],
    ["/jobs/%zz", "job"],
    [`/jobs/${WIRE_ID}/nonsense`, "job"],
    [`/jobs/${WIRE_ID}/result/more`, "job"],
    [`/jobs/${"x".repeat(5_000)}`, "job"],
    ["/jobs/%ff/wait", "job"],
  ] as const)("%.40s is not found, by any method and with any body", async (url, shape) => {
    const app = on({});
    for (const method of ["GET", "POST", "PATCH", "OPTIONS"] as const) {
      const reply = await app.inject({
        method,
        url,
        headers: { "content-type": "text/plain" },
        ...(method === "GET" ? {} : { payload: "x".repeat(3_000) }),
      });
      expect(reply.statusCode).toBe(404);
      expectOurs(reply, shape);
      if (shape === "envelope") expect(reply.json()).toMatchObject({ code: 63, msg: "not found" });
      else expect(reply.json()).toMatchObject({ error: "not found" });
    }
  });

  test("/jobs/ without an id is a job nobody has", async () => {
    const reply = await on({}).inject("/jobs/");
    expect(reply.statusCode).toBe(404);
    expectOurs(reply, "job");
  });

  test.each([
    ["/jobs", "job", "POST, GET"],
    [`/jobs/${WIRE_ID}`, "job", "GET, DELETE"],
    [`/jobs/${WIRE_ID}/wait`, "job", "GET"],
    [`/jobs/${WIRE_ID}/result`, "job", "GET"],
    [SYNC, "envelope", "POST"],
    ["/", "envelope", "POST"],
    ["/healthz", "envelope", "GET, HEAD"],
    ["/ready", "envelope", "GET, HEAD"],
    ["/metrics", "envelope", "GET, HEAD"],
    ["/openapi.json", "envelope", "GET, HEAD"],
  ] as const)("%.20s refuses every other method", async (url, shape, allow) => {
    const app = on({});
    for (const method of METHODS.filter((one) => one !== "CONNECT")) {
      if (allow.split(", ").includes(method)) continue;
      const reply = await app.inject({
        method: method as "GET",
        url,
        headers: { "content-type": "text/plain" },
      });
      expect([method, reply.statusCode, reply.headers.allow]).toEqual([method, 405, allow]);
      if (method === "HEAD") continue;
      expectOurs(reply, shape);
      expect(reply.json()).toMatchObject(
        shape === "job" ? { error: "method not allowed" } : { code: 62, msg: "method not allowed" },
      );
    }
  });
});

describe("unknown errors", () => {
  test("the client gets the registry's sentence and an id, the log gets the rest", async () => {
    const logged: [LogFields, string][] = [];
    const logger: Logger = {
      ...silentLogger,
      error: (fields, message) => logged.push([fields, message]),
    };
    const secret = new TypeError("password=hunter2");
    const fail = async (): Promise<never> => {
      throw secret;
    };
    const app = on({ get: fail, run: fail, submit: fail }, {}, { logger });
    const shown = await app.inject(`/jobs/${WIRE_ID}`);
    expect(shown.statusCode).toBe(500);
    expect(shown.json()).toEqual({ error: "internal server error", code: 64, req_id: "made-id" });
    const ran = await app.inject({
      method: "POST",
      url: SYNC,
      headers: JSON_HEADERS,
      payload: '{"req_id":"mine"}',
    });
    expect(ran.json()).toEqual({
      req_id: "mine",
      code: 64,
      msg: "internal server error",
      data: null,
    });
    expect(logged).toEqual([
      [
        { err: secret, request_id: "made-id", method: "GET", route: "/jobs/{id}" },
        "request failed",
      ],
      [
        { err: secret, request_id: "made-id", method: "POST", route: "/tasks/{task}" },
        "request failed",
      ],
    ]);
  });

  test("a job that is done without a result is such an error, not an answer", async () => {
    const app = on({
      result: async () => ({ job: job({ status: "succeeded" }), resultJson: null }),
    });
    expect((await app.inject(`/jobs/${WIRE_ID}/result`)).statusCode).toBe(500);
  });
});

describe("the token", () => {
  const guarded = (): FastifyInstance => on({ get: async () => job() }, { authToken: "s3cret-ä" });

  test.each([
    undefined,
    "",
    "Bearer",
    "Bearer ",
    "Bearer wrong",
    "Bearer s3cret",
    "Basic s3cret-ä",
    "s3cret-ä",
  ])("%s is not enough", async (authorization) => {
    const app = guarded();
    for (const [method, url, shape] of [
      ["GET", `/jobs/${WIRE_ID}`, "job"],
      ["POST", "/jobs", "job"],
      ["PATCH", "/jobs", "job"],
      ["POST", SYNC, "envelope"],
      ["GET", "/nope", "envelope"],
      ["GET", "/jobs/%ff", "job"],
      ["POST", "/tasks/%ff", "envelope"],
    ] as const) {
      const reply = await app.inject({
        method,
        url,
        headers: authorization === undefined ? {} : { authorization },
      });
      expect(reply.statusCode).toBe(401);
      expect(reply.headers["www-authenticate"]).toBe('Bearer realm="jobtable"');
      expectOurs(reply, shape);
      expect(reply.json()).toMatchObject({ code: 401 });
    }
  });

  test("the right one is, whatever the case of its scheme", async () => {
    const app = guarded();
    // As a client sends it: the bytes of UTF-8, which HTTP headers show as latin1.
    const token = Buffer.from("s3cret-ä").toString("latin1");
    for (const scheme of ["Bearer", "bearer", "BEARER "]) {
      const reply = await app.inject({
        url: `/jobs/${WIRE_ID}`,
        headers: { authorization: `${scheme} ${token}` },
      });
      expect(reply.statusCode).toBe(200);
    }
  });

  test("the service paths need none", async () => {
    const app = guarded();
    for (const url of ["/healthz", "/ready", "/metrics", "/openapi.json"]) {
      expect((await app.inject(url)).statusCode).toBe(200);
      expect((await app.inject({ method: "HEAD", url })).statusCode).toBe(200);
    }
  });
});

describe("before the engine is there", () => {
  const early = (settings: Parameters<typeof appOn>[1] = {}): FastifyInstance =>
    on({}, settings, { engine: () => null });
  const detail = "the ledger has not been reached yet";

  test("it is alive, and not ready", async () => {
    expect((await early().inject("/healthz")).statusCode).toBe(200);
    const ready = await early().inject("/ready");
    expect(ready.statusCode).toBe(503);
    expect(ready.json()).toEqual({ status: "not ready", reason: detail });
  });

  test.each([
    ["POST", "/tasks/ocr", "envelope"],
    ["POST", "/", "envelope"],
    ["GET", "/diagnostics", "envelope"],
    ["GET", "/metrics", "envelope"],
    ["GET", "/openapi.json", "envelope"],
    ["GET", "/nowhere", "envelope"],
    ["POST", "/jobs", "job"],
    ["GET", "/jobs", "job"],
    ["DELETE", "/jobs", "job"],
    ["GET", `/jobs/${WIRE_ID}/wait`, "job"],
    ["POST", `/jobs/${WIRE_ID}/retry`, "job"],
  ] as const)("%s %s comes too early", async (method, url, shape) => {
    const reply = await early().inject({ method, url, headers: JSON_HEADERS, payload: "{}" });
    expectOurs(reply, shape);
    expect(reply.statusCode).toBe(503);
    expect(reply.headers["retry-after"]).toBe("5");
    expect(reply.json()).toMatchObject({
      code: 65,
      [shape === "job" ? "error" : "msg"]: "service not ready",
      detail,
    });
  });

  test("strangers learn nothing but that", async () => {
    const reply = await early({ authToken: "t" }).inject("/jobs");
    expect(reply.statusCode).toBe(401);
  });

  test("it serves from when the engine is there", async () => {
    let engine: Engine | null = null;
    const app = on({}, {}, { engine: () => engine });
    expect((await app.inject(`/jobs/${WIRE_ID}`)).statusCode).toBe(503);
    engine = scriptedEngine({ get: async () => job() });
    expect((await app.inject(`/jobs/${WIRE_ID}`)).statusCode).toBe(200);
    expect((await app.inject("/ready")).statusCode).toBe(200);
  });
});

describe("service", () => {
  test("alive, with the headers of every reply", async () => {
    const reply = await on({}).inject({ url: "/healthz", headers: { "x-request-id": "probe" } });
    expect(reply.json()).toEqual({ status: "ok" });
    expect(reply.headers).toMatchObject({
      "cache-control": "no-store",
      "x-request-id": "probe",
    });
  });

  test.each([
    [async () => ({ ready: true, reason: null }), 200, { status: "ready" }],
    [
      async () => ({ ready: false, reason: "draining" }),
      503,
      { status: "not ready", reason: "draining" },
    ],
    [
      async () => {
        throw new Error("secret");
      },
      503,
      { status: "not ready", reason: "the readiness check failed" },
    ],
  ])("ready or not, and why", async (ready, status, body) => {
    const reply = await on({ ready }).inject("/ready");
    expect(reply.statusCode).toBe(status);
    expect(reply.json()).toEqual(body);
  });
});

test("async off: every /jobs path is unknown, the synchronous path works", async () => {
  const app = on({ run: async () => ({ kind: "done", resultJson: "1" }) }, { asyncEnabled: false });
  for (const url of ["/jobs", "/jobs?limit=1", `/jobs/${WIRE_ID}`, `/jobs/${WIRE_ID}/wait`])
    for (const method of ["GET", "POST", "DELETE"] as const) {
      const reply = await app.inject({ method, url });
      expect(reply.statusCode).toBe(404);
      expect(reply.json()).toEqual({ error: "not found", code: 63 });
      expectOurs(reply, "job");
    }
  const ran = await app.inject({ method: "POST", url: SYNC, headers: JSON_HEADERS, payload: "{}" });
  expect(ran.statusCode).toBe(200);
});

test("an outage refuses every request and is logged once in a while, with how many were left out", async () => {
  const logged: LogFields[] = [];
  let monotonicMs = 0;
  const app = on(
    {
      get: () => Promise.reject(new LedgerError("ledger_full", "the disk of jobs.db is full")),
    },
    {},
    {
      logger: { ...silentLogger, warn: (fields) => logged.push(fields) },
      clock: { ...stillClock, monotonicMs: () => monotonicMs },
    },
  );
  const refused = async () => {
    const reply = await app.inject(`/jobs/${WIRE_ID}`);
    expect(reply.statusCode).toBe(503);
    expect(reply.headers["retry-after"]).toBe("5");
    expect(reply.body).not.toContain("jobs.db");
  };
  for (let request = 0; request < 5; request += 1) await refused();
  expect(logged).toMatchObject([{ unlogged: 0 }]);
  monotonicMs = 10_000;
  await refused();
  expect(logged).toMatchObject([{ unlogged: 0 }, { unlogged: 4 }]);
});
