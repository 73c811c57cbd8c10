/** Plans over HTTP: a real repository, the real engine with a worker for plans, the memory ledger. */
import type { FastifyInstance } from "fastify";
import { writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { SETTINGS } from "../../../test/http/scripted-engine.js";
import { Scratch } from "../../../test/plan/scratch.js";
import { openPlans, planWork } from "../../compose/plans.js";
import type { Engine, EngineSettings } from "../../engine/api.js";
import { createEngine } from "../../engine/engine.js";
import type { Ledger } from "../../ledger/ledger.js";
import { openMemoryLedger } from "../../ledger/memory/memory-ledger.js";
import { readAsked, type PlansHere } from "../../plan/asked.js";
import { systemClock } from "../../runtime/clock.js";
import { silentLogger } from "../../runtime/logger.js";
import { createTaskRegistry } from "../../task/registry.js";
import { createHttpApp, type HttpSettings } from "../app.js";
import { createMetrics, type Metrics } from "../metrics.js";

// Each starts a few dozen processes of git, and the machine may be busy with others.
vi.setConfig({ testTimeout: 120_000 });

const NO_TASKS = createTaskRegistry([]);
const ENGINE: EngineSettings = {
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
};

interface Options {
  /** Of the engine. */
  readonly worker?: boolean;
  readonly engine?: Partial<EngineSettings>;
  readonly http?: Partial<HttpSettings>;
}

interface Rig {
  readonly app: FastifyInstance;
  readonly engine: Engine;
  readonly ledger: Ledger;
  readonly here: PlansHere;
  readonly metrics: Metrics;
  readonly post: (path: string, headers?: Record<string, string>) => ReturnType<typeof answered>;
  readonly get: (path: string) => ReturnType<typeof answered>;
}

let scratch: Scratch;
let root: string;
let file: string;
const closers: (() => Promise<unknown>)[] = [];

beforeEach(() => {
  scratch = new Scratch();
  root = scratch.repository("app", { "a.txt": "one\n" });
  file = scratch.path("edit.json");
  write("printf 'two\\n' >> a.txt; echo said");
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  scratch.remove();
});

function write(run: string, changes: object = {}): void {
  const plan = { name: "edit", workspace: root, execute: [{ run }], ...changes };
  writeFileSync(file, JSON.stringify(plan));
}

async function open({ worker = true, engine: changed, http }: Options = {}): Promise<Rig> {
  const ledger = openMemoryLedger({ clock: systemClock });
  const settings = { ...ENGINE, ...changed };
  const metrics = createMetrics({ tasks: [], processMetrics: false });
  const ports = { ledger, tasks: NO_TASKS, settings, logger: silentLogger, env: scratch.env };
  const work = worker ? planWork(ports).parts : {};
  const engine = createEngine({ ...ports, ...work, worker, observer: metrics.observer });
  const here = openPlans({ ...ports, engine });
  const app = createHttpApp({
    tasks: NO_TASKS,
    engine: () => engine,
    plans: () => here,
    metrics,
    logger: silentLogger,
    settings: { ...SETTINGS, ...http },
  });
  closers.push(
    () => ledger.close(),
    () => app.close(),
    () => engine.stop(),
  );
  await engine.start();
  const call = (method: "GET" | "POST", url: string, headers: Record<string, string>) =>
    answered(app, { method, url, headers });
  return {
    app,
    engine,
    ledger,
    here,
    metrics,
    post: (path, headers = {}) => call("POST", path, headers),
    get: (path) => call("GET", path, {}),
  };
}

async function answered(
  app: FastifyInstance,
  request: { method: "GET" | "POST"; url: string; headers: Record<string, string> },
) {
  const reply = await app.inject(request);
  const isJson = String(reply.headers["content-type"]).startsWith("application/json");
  const json = isJson ? reply.json<Record<string, unknown>>() : {};
  return { status: reply.statusCode, headers: reply.headers, json, bytes: reply.rawPayload };
}

/** As the command line records it, whoever runs it. */
async function used({ here }: Rig): Promise<string> {
  const outcome = await here.plans.execute(await readAsked(here, file, scratch.dir));
  if (outcome.kind !== "started") throw new Error(outcome.kind);
  return outcome.job.jobId;
}

async function ended({ engine }: Rig, jobId: unknown): Promise<string | undefined> {
  const id = String(jobId).replace("job_", "");
  return (await engine.wait(id, { timeoutMs: 60_000, until: "end" }))?.status;
}

test("a plan that was used is executed, looked at and applied, as its file is now", async () => {
  const rig = await open();
  expect((await rig.get("/plans")).json).toEqual({ plans: [] });
  expect(await ended(rig, await used(rig))).toBe("succeeded");
  write("printf 'three\\n' >> a.txt; echo said");
  const reply = await rig.post("/plans/edit/execute");
  const { job_id: jobId, plan_id: planId } = reply.json;
  expect(reply.status).toBe(202);
  expect(reply.headers.location).toBe(`/jobs/${String(jobId)}`);
  expect(reply.json).toEqual({
    job_id: expect.stringMatching(/^job_/) as unknown,
    plan_id: expect.stringMatching(/^plan_/) as unknown,
    phase: "execute",
    state: "pending",
    poll_url: `/jobs/${String(jobId)}`,
    result_url: `/jobs/${String(jobId)}/result`,
  });
  expect(await ended(rig, jobId)).toBe("succeeded");

  const plan = (await rig.get(`/plans/${String(planId)}`)).json;
  expect(plan).toMatchObject({ name: "edit", workspace: root, execute: { state: "done" } });
  expect(JSON.stringify(plan)).not.toContain('"log":');
  const ulid = String(planId).replace("plan_", "");
  expect(JSON.stringify((await rig.get(`/plans/${ulid}?logs=true`)).json)).toContain(
    '"log":"said\\n"',
  );
  expect((await rig.get(`/plans/${ulid}?logs=yes`)).status).toBe(422);
  expect((await rig.get("/plans?limit=1")).json).toMatchObject({ plans: [{ plan_id: planId }] });

  const diff = await rig.get("/plans/edit/diff");
  expect([diff.status, diff.headers["content-type"]]).toEqual([200, "text/x-diff"]);
  const recorded = await rig.here.plans.diff(await rig.here.plans.find("edit"));
  expect(Buffer.from(recorded ?? []).equals(diff.bytes)).toBe(true);
  expect(diff.bytes.toString()).toContain("\n+three\n");

  const applied = await rig.post("/plans/edit/apply");
  expect([applied.status, applied.json["phase"]]).toEqual([202, "apply"]);
  expect(await ended(rig, applied.json["job_id"])).toBe("succeeded");
  expect(scratch.git(root, "diff", "--no-ext-diff", "a.txt")).toContain("three");
  const again = await rig.post("/plans/edit/apply");
  expect(again.status).toBe(409);
  expect(again.json["error"]).toMatch(/^plan edit: nothing to apply: .* was applied by job_/);
  expect(await rig.metrics.registry.metrics()).toContain(
    'jobtable_jobs_accepted_total{task="plan:execute"} 2',
  );
});

test("one phase at a time, within the bound, and cancelled as a job is", async () => {
  const rig = await open({ worker: false, engine: { asyncMaxQueue: 1 } });
  const jobId = `job_${await used(rig)}`;
  const held = await rig.post("/plans/edit/execute");
  expect([held.status, held.json]).toEqual([
    409,
    { error: "plan edit: execute is pending", code: 409, job_id: jobId },
  ]);
  expect((await rig.post("/plans/edit/apply")).json["job_id"]).toBe(jobId);
  const cancelled = await rig.post("/plans/edit/cancel");
  expect([cancelled.status, cancelled.json]).toEqual([200, { job_id: jobId, state: "cancelled" }]);
  expect((await rig.post("/plans/edit/cancel")).json).toEqual({
    error: "plan edit: no phase of it waits or runs",
    code: 409,
  });
  expect((await rig.get("/plans/edit/diff")).status).toBe(404);

  write("true", { name: "second" });
  await used(rig);
  const full = await rig.post("/plans/edit/execute");
  expect([full.status, full.json["error"]]).toEqual([429, "async queue full (max 1)"]);
  expect(Number(full.headers["retry-after"])).toBeGreaterThanOrEqual(1);
  expect(await rig.metrics.registry.metrics()).toContain(
    'jobtable_jobs_refused_total{task="plan:execute"} 1',
  );
});

test("a job that runs is told to stop", async () => {
  const rig = await open();
  write("sleep 60");
  const jobId = await used(rig);
  if ((await rig.engine.get(jobId))?.status === "queued")
    await rig.engine.wait(jobId, { timeoutMs: 30_000, until: "change" });
  const reply = await rig.post("/plans/edit/cancel");
  expect([reply.status, reply.json]).toEqual([202, { job_id: `job_${jobId}`, state: "running" }]);
  expect(await ended(rig, jobId)).toBe("cancelled");
});

test("what waits for a worker longer than async_timeout ends", async () => {
  const rig = await open({ worker: false, engine: { asyncTimeoutMs: 50 } });
  expect(await ended(rig, await used(rig))).toBe("timed_out");
});

test("neither files nor commands come in, and what is wrong with a file is told", async () => {
  const rig = await open({ worker: false });
  const asked = encodeURIComponent(file);
  const reply = await rig.post(`/plans/${asked}/execute`);
  expect([reply.status, reply.json["code"]]).toEqual([404, 63]);
  expect((await rig.post("/plans/edit/execute")).status).toBe(404);
  expect(await rig.here.plans.list()).toEqual([]);
  await rig.here.plans.execute(await readAsked(rig.here, file, scratch.dir));
  await rig.post("/plans/edit/cancel");
  writeFileSync(file, "{}");
  const broken = await rig.post("/plans/edit/execute");
  expect([broken.status, broken.json["code"]]).toEqual([422, 51]);
  expect(String(broken.json["error"])).toContain("edit.json");
});

test("a web page is refused unless a token keeps it out", async () => {
  const page = { origin: "http://127.0.0.1:8202" };
  const bare = await open({ worker: false });
  expect((await bare.post("/plans/edit/execute", page)).status).toBe(400);
  expect((await bare.post("/plans/edit/execute")).status).toBe(404);
  const guarded = await open({ worker: false, http: { authToken: "secret" } });
  expect((await guarded.post("/plans/edit/execute", page)).status).toBe(401);
  const { status } = await guarded.post("/plans/edit/execute", {
    ...page,
    authorization: "Bearer secret",
  });
  expect(status).toBe(404);
});

test("off, every path is 404 in the shape of jobs", async () => {
  const { post, get } = await open({ worker: false, http: { asyncEnabled: false } });
  for (const reply of [await get("/plans"), await get("/plans/x/diff"), await post("/plans/x/y")])
    expect([reply.status, reply.json]).toEqual([404, { error: "not found", code: 63 }]);
});
