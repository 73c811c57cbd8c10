/** The wire on the real engine and the memory ledger: what the scripted tests take for granted. */
import type { FastifyInstance } from "fastify";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import type { Engine } from "../engine/api.js";
import { createEngine } from "../engine/engine.js";
import type { Ledger } from "../ledger/ledger.js";
import { openMemoryLedger } from "../ledger/memory/memory-ledger.js";
import { systemClock } from "../runtime/clock.js";
import { silentLogger } from "../runtime/logger.js";
import { defineInline } from "../task/definition.js";
import { createTaskRegistry } from "../task/registry.js";
import { createHttpApp } from "./app.js";
import { createMetrics } from "./metrics.js";

interface Job {
  job_id: string;
  state: string;
  error?: string;
}

/** Lets handlers that wait for it go on. */
let gate: { promise: Promise<void>; open: () => void };
let ledger: Ledger;
let engine: Engine;
let app: FastifyInstance;

const tasks = createTaskRegistry(
  defineInline({
    gated: {
      input: z.object({ text: z.string().min(1) }),
      async run(input: unknown, { signal }) {
        const told = new Promise((resolve) => {
          signal.addEventListener("abort", resolve, { once: true });
        });
        await Promise.race([gate.promise, told]);
        return input;
      },
    },
    failing: () => {
      throw new RangeError("out of paper");
    },
  }),
);

beforeEach(async () => {
  let open: () => void = () => undefined;
  const promise = new Promise<void>((resolve) => {
    open = resolve;
  });
  gate = { promise, open };
  ledger = openMemoryLedger({ clock: systemClock });
  const metrics = createMetrics({ tasks: tasks.names, processMetrics: false });
  engine = createEngine({
    ledger,
    tasks,
    logger: silentLogger,
    observer: metrics.observer,
    worker: true,
    settings: {
      asyncTimeoutMs: 0,
      asyncMaxQueue: 2,
      asyncJobTtlMs: 60_000,
      asyncMaxCompleted: 100,
      maxWorkers: 1,
      pollIntervalMs: 1_000,
      jobTimeoutMs: 60_000,
      workerTimeoutMs: 30_000,
      modelRunTimeoutMs: 0,
      maxQueueDepth: 0,
      cancelGraceMs: 1_000,
      shutdownTimeoutMs: 1_000,
    },
  });
  app = createHttpApp({
    tasks,
    engine: () => engine,
    metrics,
    logger: silentLogger,
    settings: {
      asyncEnabled: true,
      authToken: null,
      requestSizeLimitBytes: 100_000,
      defaultTask: "gated",
    },
  });
  await engine.start();
});

afterEach(async () => {
  gate.open();
  await engine.stop();
  await app.close();
  await ledger.close();
});

const post = (url: string, payload: unknown) =>
  app.inject({
    method: "POST",
    url,
    headers: { "content-type": "application/json" },
    payload: JSON.stringify(payload),
  });
const submit = async (payload: unknown): Promise<string> =>
  (await post("/jobs", payload)).json<Job>().job_id;
const look = async (id: string): Promise<Job> => (await app.inject(`/jobs/${id}`)).json<Job>();

async function becomes(id: string, state: string): Promise<Job> {
  for (let job = await look(id); ; job = (await app.inject(`/jobs/${id}/wait`)).json<Job>())
    if (job.state === state) return job;
}

describe("a job", () => {
  test("is accepted, runs, is awaited, and answers as often as asked", async () => {
    const id = await submit({ text: "é\0\ud800", req_id: "r-1" });
    await becomes(id, "running");
    const early = await app.inject(`/jobs/${id}/result`);
    expect([early.statusCode, early.json<Job>().error]).toEqual([
      409,
      "job not finished (state: running)",
    ]);
    gate.open();
    await becomes(id, "done");
    for (let times = 0; times < 2; times += 1)
      expect((await app.inject(`/jobs/${id}/result`)).json()).toMatchObject({
        req_id: "r-1",
        code: 0,
        data: { text: expect.stringMatching(/^é/) as unknown },
      });
    expect((await app.inject("/jobs?state=done&task=gated")).json()).toMatchObject({
      jobs: [{ job_id: id, state: "done" }],
    });
    const figures = (await app.inject("/metrics")).body;
    expect(figures).toContain('jobtable_jobs_total{task="gated",status="succeeded"} 1');
    expect(figures).toContain('jobtable_jobs_accepted_total{task="gated"} 1');
  });

  test("F39, F4: of one key is one, for all who send it at once, and after its end", async () => {
    const send = () =>
      app.inject({
        method: "POST",
        url: "/jobs",
        headers: { "content-type": "application/json", "idempotency-key": "k" },
        payload: JSON.stringify({ task: "gated", input: { text: "a" } }),
      });
    const replies = await Promise.all(Array.from({ length: 20 }, send));
    expect(new Set(replies.map(({ statusCode }) => statusCode))).toEqual(new Set([202]));
    const [id = "", ...others] = new Set(replies.map((reply) => reply.json<Job>().job_id));
    expect(others).toEqual([]);
    const replayed = replies.filter(({ headers }) => headers["idempotent-replayed"] === "true");
    expect(replayed.length).toBe(19);
    gate.open();
    await becomes(id, "done");
    expect((await send()).json()).toMatchObject({ job_id: id, state: "done" });
    expect((await app.inject(`/jobs/${id}`)).json()).toMatchObject({ idempotency_key: "k" });
    const other = await post("/jobs", {
      task: "gated",
      input: { text: "b" },
      idempotency_key: "k",
    });
    expect([other.statusCode, other.json<Job>().error]).toEqual([422, "idempotency key conflict"]);
  });

  test("says how it failed", async () => {
    const id = await submit({ task: "failing" });
    expect((await becomes(id, "failed")).error).toBe("RangeError: out of paper");
    expect((await app.inject(`/jobs/${id}/result`)).json()).toMatchObject({
      error: "job not finished (state: failed)",
      reason: "RangeError: out of paper",
    });
  });

  test("is refused beyond the bound, and cancelled in either state", async () => {
    const running = await submit({ text: "a" });
    await becomes(running, "running");
    const waiting = await submit({ text: "b" });
    const refused = await post("/jobs", { text: "c" });
    expect([refused.statusCode, refused.json<Job>().error]).toEqual([
      429,
      "async queue full (max 2)",
    ]);
    const cancel = (id: string) => app.inject({ method: "DELETE", url: `/jobs/${id}` });
    const one = await cancel(waiting);
    expect([one.statusCode, one.json<Job>().state]).toEqual([200, "cancelled"]);
    const two = await cancel(running);
    expect([two.statusCode, two.json<Job>().state]).toEqual([202, "running"]);
    await becomes(running, "cancelled");
    expect((await cancel(running)).statusCode).toBe(409);
    // Not in memory, which forgets an input once its job has ended.
    const retried = await post(`/jobs/${waiting}/retry`, {});
    expect([retried.statusCode, retried.json<Job>().error]).toEqual([
      409,
      `job's input is gone: ${waiting}`,
    ]);
  });

  test.each([
    [{ text: "" }, 400, "model input empty"],
    [{}, 400, "model input empty"],
    [{ text: 7 }, 422, "invalid input"],
    [{ task: "nope", input: {} }, 422, "unknown task: nope"],
  ])("%j is refused and leaves nothing", async (body, status, error) => {
    const reply = await post("/jobs", body);
    expect([reply.statusCode, reply.json<Job>().error]).toEqual([status, error]);
    expect((await engine.counts()).total).toBe(0);
  });
});

describe("the synchronous path", () => {
  test("runs, fails, and refuses like the other", async () => {
    gate.open();
    expect((await post("/tasks/gated", { text: "a", req_id: "s" })).json()).toEqual({
      req_id: "s",
      code: 0,
      msg: "success",
      data: { text: "a" },
    });
    const failed = await post("/tasks/failing", {});
    expect(failed.statusCode).toBe(500);
    expect(failed.json()).toMatchObject({ code: 2, detail: "RangeError: out of paper" });
    expect((await post("/tasks/gated", {})).json()).toMatchObject({ code: 3 });
  });

  test("a stopped engine is not ready", async () => {
    expect((await app.inject("/ready")).statusCode).toBe(200);
    await engine.stop();
    expect((await app.inject("/ready")).statusCode).toBe(503);
    expect((await post("/tasks/gated", { text: "a" })).statusCode).toBe(503);
    expect((await post("/jobs", { text: "a" })).statusCode).toBe(503);
  });
});

test("each task's input stands in the OpenAPI document", async () => {
  const { components } = (await app.inject("/openapi.json")).json<{
    components: { schemas: Record<string, unknown> };
  }>();
  expect(components.schemas["input.gated"]).toMatchObject({
    type: "object",
    properties: { text: { type: "string", minLength: 1 } },
    required: ["text"],
  });
});
