/** A store and a server before it answer alike, verb for verb. */
import type { FastifyInstance } from "fastify";
import { afterEach, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import {
  Connection,
  createRig,
  HeldTask,
  SETTINGS,
  stopped,
  type Rig,
} from "../../test/engine-rig.js";
import { acceptOne } from "../../test/ledger/acts.js";
import { injectedFetch } from "../../test/http/injected-fetch.js";
import { settled, VirtualClock } from "../../test/virtual-clock.js";
import { JobtableClient } from "../client/client.js";
import type { Jobs } from "../client/jobs.js";
import { createHttpApp } from "../http/app.js";
import { createMetrics } from "../http/metrics.js";
import { openMemoryLedger } from "../ledger/memory/memory-ledger.js";
import { silentLogger } from "../runtime/logger.js";
import { LedgerJobs } from "./ledger-jobs.js";

const UNKNOWN = "job_00000000000000000000000000";

let task: HeldTask;
let connection: Connection;
let rig: Rig;
let app: FastifyInstance;
let ways: readonly Jobs[];

beforeEach(async () => {
  task = new HeldTask("ocr", { input: z.object({ text: z.string() }) });
  const clock = new VirtualClock();
  connection = new Connection(openMemoryLedger({ clock }));
  rig = createRig({
    tasks: [task.options],
    settings: { maxWorkers: 1, asyncMaxQueue: 4 },
    ledger: connection.ledger,
    clock,
  });
  await rig.engine.start();
  const { engine } = rig;
  app = createHttpApp({
    tasks: engine.tasks,
    engine: () => engine,
    clock,
    logger: silentLogger,
    metrics: createMetrics({ tasks: engine.tasks.names, clock, processMetrics: false }),
    settings: {
      asyncEnabled: true,
      authToken: "t",
      requestSizeLimitBytes: 10_000,
      defaultTask: null,
    },
  });
  const client = { server: "http://test/", token: "t", fetch: injectedFetch(app) };
  const settings = { asyncEnabled: true, workerTimeoutMs: SETTINGS.workerTimeoutMs };
  ways = [new LedgerJobs(engine, clock, settings), new JobtableClient(client)];
});

afterEach(async () => {
  await app.close();
  await stopped(rig);
});

/** What both answer, which must be the same. */
async function both<Answer>(ask: (jobs: Jobs) => Promise<Answer>): Promise<Answer> {
  const [one, two] = await Promise.all(ways.map(ask));
  expect(two).toEqual(one);
  return one as Answer;
}

async function submit(options: object = {}): Promise<string> {
  const [jobs] = ways;
  const answer = await jobs?.submit({ task: "ocr", input: { text: "x" }, ...options });
  if (answer?.kind !== "accepted") throw new Error(`not accepted: ${String(answer?.message)}`);
  await settled();
  return answer.jobId;
}

test("what is accepted, and its options", async () => {
  const runAtMs = rig.clock.nowMs() + 60_000;
  for (const jobs of ways) {
    const answer = await jobs.submit({
      task: "ocr",
      input: { text: "x" },
      requestId: "r",
      priority: 5,
      delayMs: 60_000,
      maxAttempts: 3,
      timeoutMs: 1_000,
    });
    if (answer.kind !== "accepted") throw new Error(answer.message);
    expect(answer).toEqual({ kind: "accepted", jobId: answer.jobId, repeated: false });
    const job = await both((way) => way.get(answer.jobId));
    expect(job).toMatchObject({ req_id: "r", priority: 5, max_attempts: 3, state: "pending" });
    const [record] = await rig.ledger.get([answer.jobId.slice(4)]);
    expect(record).toMatchObject({ runAtMs, timeoutMs: 1_000 });
  }
});

test("a key is one job, and only of one input", async () => {
  const first = await submit({ idempotencyKey: "k" });
  const again = await both((jobs) =>
    jobs.submit({ task: "ocr", input: { text: "x" }, idempotencyKey: "k" }),
  );
  expect(again).toEqual({ kind: "accepted", jobId: first, repeated: true });
  const other = await both((jobs) =>
    jobs.submit({ task: "ocr", input: { text: "y" }, idempotencyKey: "k" }),
  );
  expect(other).toMatchObject({ kind: "refused", status: 422 });
  expect(await both((jobs) => jobs.get(first))).toMatchObject({ idempotency_key: "k" });
});

test("an earliest start as a time", async () => {
  const runAtMs = rig.clock.nowMs() + 90_000;
  const ids = await Promise.all(
    ways.map((jobs) => jobs.submit({ task: "ocr", input: { text: "x" }, runAtMs })),
  );
  for (const answer of ids) {
    if (answer.kind !== "accepted") throw new Error(answer.kind);
    expect(await rig.ledger.get([answer.jobId.slice(4)])).toMatchObject([{ runAtMs }]);
  }
});

test("what is refused", async () => {
  expect(await both((jobs) => jobs.submit({ task: "none", input: {} }))).toMatchObject({
    status: 422,
    message: "unknown task: none; known: ocr",
  });
  const invalid = await both((jobs) => jobs.submit({ task: "ocr", input: { text: 1 } }));
  expect(invalid).toMatchObject({ kind: "refused", status: 422, retryAfterS: null });
  expect(invalid).toHaveProperty("message", expect.stringMatching(/^invalid input: text: /));
  for (let count = 0; count < 4; count += 1) await submit();
  expect(await both((jobs) => jobs.submit({ task: "ocr", input: { text: "x" } }))).toEqual({
    kind: "refused",
    status: 429,
    message: "async queue full (max 4)",
    retryAfterS: 1,
  });
});

test("a job that runs, ends, and gives its result", async () => {
  const jobId = await submit({ requestId: "r-1" });
  expect(await both((jobs) => jobs.get(jobId))).toMatchObject({ state: "running", attempt: 1 });
  expect(await both((jobs) => jobs.result(jobId))).toMatchObject({
    kind: "refused",
    status: 409,
    message: "job not finished (state: running)",
  });
  const waits = both((jobs) => jobs.wait(jobId, 5_000));
  await settled();
  task.call(0).succeed({ said: "x" });
  expect(await waits).toMatchObject({ job_id: jobId, state: "done" });
  expect(await both((jobs) => jobs.result(jobId.slice(4)))).toEqual({
    kind: "done",
    envelopeJson: '{"req_id":"r-1","code":0,"msg":"success","data":{"said":"x"}}',
  });
});

test("a job that fails says why", async () => {
  const jobId = await submit();
  task.call(0).fail(new Error("out of paper"));
  await settled();
  expect(await both((jobs) => jobs.get(jobId))).toMatchObject({ error: "Error: out of paper" });
  expect(await both((jobs) => jobs.result(jobId))).toMatchObject({
    message: "job not finished (state: failed): Error: out of paper",
  });
  expect(await both((jobs) => jobs.cancel(jobId))).toMatchObject({
    kind: "refused",
    status: 409,
    message: "job already finished (state: failed)",
  });
});

test("cancelling one that runs and one that waits", async () => {
  const [running, first, second] = [await submit(), await submit(), await submit()];
  expect(await both((jobs) => jobs.cancel(running))).toEqual({
    kind: "requested",
    jobId: running,
    state: "running",
  });
  for (const [index, jobId] of [first, second].entries())
    expect(await ways[index]?.cancel(jobId)).toEqual({
      kind: "cancelled",
      jobId,
      state: "cancelled",
    });
});

test("what can't be run once more", async () => {
  const jobId = await submit();
  expect(await both((jobs) => jobs.retry(jobId))).toMatchObject({
    kind: "refused",
    status: 409,
    message: "job not finished (state: running)",
  });
  task.call(0).succeed({});
  await settled();
  // The memory ledger forgets the input of what has ended.
  expect(await both((jobs) => jobs.retry(jobId))).toMatchObject({
    kind: "refused",
    status: 409,
    message: expect.stringMatching(/^job's input is gone: job_\w+: a store in memory/) as string,
  });
  const planId = UNKNOWN.slice("job_".length);
  const ofPlan = await acceptOne(rig.ledger, { planId, phase: "apply", task: "plan:apply" });
  expect(await both((jobs) => jobs.retry(ofPlan.jobId))).toMatchObject({
    kind: "refused",
    status: 409,
    message: `a plan's job can't be retried: a plan runs one phase at a time: run jobtable plan apply plan_${planId} instead`,
  });
});

test("what is unknown", async () => {
  for (const jobId of [UNKNOWN, "what?"]) {
    expect(await both((jobs) => jobs.get(jobId))).toBeNull();
    expect(await both((jobs) => jobs.wait(jobId, 10))).toBeNull();
    expect(await both((jobs) => jobs.result(jobId))).toEqual({ kind: "unknown" });
    expect(await both((jobs) => jobs.cancel(jobId))).toEqual({ kind: "unknown" });
    expect(await both((jobs) => jobs.retry(jobId))).toEqual({ kind: "unknown" });
  }
});

test("lists, filtered and in pages", async () => {
  const ids = [await submit(), await submit(), await submit()];
  const page = await both((jobs) => jobs.list({ limit: 2 }));
  expect(page.jobs.map(({ job_id }) => job_id)).toEqual([ids[2], ids[1]]);
  const cursor = page.next_cursor ?? "";
  const rest = await both((jobs) => jobs.list({ limit: 1_000, cursor }));
  expect(rest).toMatchObject({ jobs: [{ job_id: ids[0] }] });
  expect(rest).not.toHaveProperty("next_cursor");
  const running = await both((jobs) => jobs.list({ limit: 9, states: ["running", "done"] }));
  expect(running.jobs).toMatchObject([{ job_id: ids[0], state: "running" }]);
  expect(await both((jobs) => jobs.list({ limit: 9, task: "none" }))).toEqual({ jobs: [] });
  const planId = UNKNOWN.slice("job_".length);
  const { jobId } = await acceptOne(rig.ledger, { planId, phase: "apply", task: "plan:apply" });
  for (const plan of [planId, `plan_${planId}`])
    expect(await both((jobs) => jobs.list({ limit: 9, plan }))).toMatchObject({
      jobs: [{ job_id: `job_${jobId}`, plan_id: `plan_${planId}`, phase: "apply" }],
    });
});

test("a list goes on behind a page that is short, whichever way", async () => {
  const ids = [await submit(), await submit(), await submit()];
  let pages = 0;
  const { ledger } = connection;
  const list = ledger.list.bind(ledger);
  ledger.list = (query) => {
    pages += 1;
    return list({ ...query, limit: 1 });
  };
  const page = await both((jobs) => jobs.list({ limit: 2 }));
  expect(page.jobs.map(({ job_id }) => job_id)).toEqual([ids[2], ids[1]]);
  expect(page).toHaveProperty("next_cursor");
  const all = await both((jobs) => jobs.list({ limit: 9 }));
  expect(all.jobs.map(({ job_id }) => job_id)).toEqual(ids.toReversed());
  expect(all).not.toHaveProperty("next_cursor");
  expect(pages).toBeGreaterThan(8);
});

test("whether anyone runs the task of a new job is asked of the workers alone", async () => {
  const jobId = await submit();
  const job = await both((jobs) => jobs.get(jobId));
  if (job === null) throw new Error("there is no job");
  expect(await both((jobs) => jobs.isServed(job))).toBe(true);
  expect(await both((jobs) => jobs.isServed({ ...job, task: "other" }))).toBe(false);
  // Its only worker would have been silent for too long when this one was submitted.
  const late = new Date(Date.parse(job.created_at) + SETTINGS.workerTimeoutMs + 1).toISOString();
  const asked = connection.calls.inspect;
  expect(await ways[0]?.isServed({ ...job, created_at: late })).toBe(false);
  expect(connection.calls.inspect).toBe(asked);
});

test("a diagnosis: all is well, then what is not", async () => {
  const well = await both((jobs) => jobs.diagnose());
  expect(well).toMatchObject({
    ok: true,
    problems: [],
    async: { enabled: true, max_workers: 1, poll_interval_ms: 1_000 },
    ledger: { kind: "memory", software: "memory", schema_version: null },
    depth: { queued: 0, running: 0, total: 0, limit: 4, oldest_queued_ms: null },
    oldest_queued: null,
    workers: [{ state: "running", max_workers: 1, tasks: ["ocr"] }],
    stuck: [],
    unserved: [],
  });
  const running = await submit();
  const oldest = await submit();
  await submit();
  await submit();
  await rig.clock.advance(2_000);
  const full = await both((jobs) => jobs.diagnose());
  expect(full).toMatchObject({
    ok: false,
    problems: [{ kind: "queue_full" }],
    depth: { queued: 3, running: 1, oldest_queued_ms: 2_000 },
    oldest_queued: { job_id: oldest, task: "ocr", waited_ms: 2_000 },
  });
  expect(await rig.ledger.get([running.slice(4)])).toMatchObject([{ status: "running" }]);
});

test("a diagnosis needs the token, and a ledger that answers", async () => {
  const stranger = new JobtableClient({ server: "http://test", fetch: injectedFetch(app) });
  await expect(stranger.diagnose()).rejects.toMatchObject({ reason: "unauthorized" });
  await stopped(rig);
  await rig.ledger.close();
  const [store, server] = ways;
  await expect(store?.diagnose()).rejects.toMatchObject({ code: "ledger_closed" });
  await expect(server?.diagnose()).rejects.toMatchObject({ reason: "unavailable" });
});
