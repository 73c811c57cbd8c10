/** An engine whose answers a test writes down; what is not written fails the test that asks for it. */
import type { FastifyInstance } from "fastify";
import type { Engine } from "../../src/engine/api.js";
import { createHttpApp, type HttpOptions, type HttpSettings } from "../../src/http/app.js";
import { createMetrics } from "../../src/http/metrics.js";
import type { Job } from "../../src/job/job.js";
import type { Clock } from "../../src/runtime/clock.js";
import { silentLogger } from "../../src/runtime/logger.js";
import type { RegisteredTask, TaskRegistry } from "../../src/task/registry.js";

export const JOB_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
export const WIRE_ID = `job_${JOB_ID}`;
export const NOW_MS = Date.UTC(2026, 0, 2, 3, 4, 5);

/** Stands still. Its timers never fire. */
export const stillClock: Clock = {
  nowMs: () => NOW_MS,
  monotonicMs: () => 1_000,
  timer: () => () => undefined,
};

export function job(changes: Partial<Job> = {}): Job {
  return {
    jobId: JOB_ID,
    planId: null,
    phase: null,
    task: "ocr",
    queue: "default",
    status: "queued",
    priority: 0,
    runAtMs: NOW_MS - 1_500,
    attempt: 0,
    maxAttempts: 1,
    timeoutMs: null,
    createdAtMs: NOW_MS - 1_500,
    startedAtMs: null,
    finishedAtMs: null,
    lastHeartbeatMs: null,
    cancelRequestedAtMs: null,
    workerId: null,
    schemaVersion: 1,
    errorMessage: null,
    requestId: "r-1",
    idempotencyKey: null,
    attemptErrors: [],
    progressJson: null,
    ...changes,
  };
}

export function registry(
  names: readonly string[],
  inputs: Readonly<Record<string, Record<string, unknown>>> = {},
): TaskRegistry {
  const tasks = new Map<string, RegisteredTask>(
    names.map((name) => [
      name,
      {
        name,
        description: null,
        isolation: "inline",
        timeoutMs: null,
        maxAttempts: 1,
        version: 1,
        file: null,
        definition: { run: () => null },
      },
    ]),
  );
  return {
    names,
    get: (name) => tasks.get(name),
    checkInput: (_, value) => ({ kind: "valid", value }),
    inputJsonSchema: ({ name }) => inputs[name] ?? {},
  };
}

function unscripted(verb: string): () => never {
  return () => {
    throw new Error(`the test did not expect ${verb}`);
  };
}

export function scriptedEngine(script: Partial<Engine>): Engine {
  return {
    tasks: registry(["ocr"]),
    submit: unscripted("submit"),
    submitMany: unscripted("submitMany"),
    record: unscripted("record"),
    run: unscripted("run"),
    get: unscripted("get"),
    wait: unscripted("wait"),
    result: unscripted("result"),
    cancel: unscripted("cancel"),
    retry: unscripted("retry"),
    list: unscripted("list"),
    counts: async () => ({ queued: 3, running: 2, total: 9, oldestQueuedMs: 1_500 }),
    health: () => ({
      state: "running",
      workerId: "worker-00000000",
      maxWorkers: 4,
      pollIntervalMs: 1_000,
      busy: 3,
      waiting: 1,
      processed: 0,
      failed: 0,
      cancelled: 0,
      lastHeartbeatMs: null,
      ledgerFault: null,
    }),
    workers: unscripted("workers"),
    diagnose: unscripted("diagnose"),
    ready: async () => ({ ready: true, reason: null }),
    start: unscripted("start"),
    stop: unscripted("stop"),
    ...script,
  };
}

export const SETTINGS: HttpSettings = {
  asyncEnabled: true,
  authToken: null,
  requestSizeLimitBytes: 1_000,
  defaultTask: null,
};

export function appOn(
  script: Partial<Engine> = {},
  settings: Partial<HttpSettings> = {},
  options: Partial<HttpOptions> = {},
): FastifyInstance {
  const engine = scriptedEngine(script);
  return createHttpApp({
    tasks: engine.tasks,
    engine: () => engine,
    settings: { ...SETTINGS, ...settings },
    logger: silentLogger,
    metrics: createMetrics({
      tasks: engine.tasks.names,
      clock: stillClock,
      processMetrics: false,
    }),
    clock: stillClock,
    newRequestId: () => "made-id",
    ...options,
  });
}
