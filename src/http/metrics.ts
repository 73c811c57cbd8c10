/**
 * What is counted, for Prometheus, in a registry of its own. Labels are bounded: tasks are the
 * registered ones and those of plans, routes are patterns, methods the common ones; everything else is `other`.
 * Cells are made once and kept, so that counting costs next to nothing. What the
 * ledger knows is read when someone scrapes; while it is out of reach the rest is still answered.
 */
import { collectDefaultMetrics, Gauge, Registry } from "prom-client";
import type { Engine, EngineObserver } from "../engine/api.js";
import type { Counts } from "../ledger/ledger.js";
import { PLAN_TASKS } from "../job/payload.js";
import { STATUSES } from "../job/state.js";
import { systemClock, type Clock } from "../runtime/clock.js";
import { within } from "../runtime/within.js";
import { tallyCounter, tallyHistogram } from "./tally.js";

export interface HttpMeter {
  /** One request was answered. */
  ended(status: number, seconds: number): void;
}

export interface Metrics {
  readonly registry: Registry;
  /** Give it to the engine. */
  readonly observer: EngineObserver;
  /** The meter of one route; keep it. */
  route(method: string, pattern: string): HttpMeter;
  /** The exposition text, with what `engine` says right now. Never rejects for the ledger's sake. */
  scrape(engine: Pick<Engine, "counts" | "health">): Promise<string>;
}

export interface MetricsOptions {
  /** Names of the registered tasks. */
  readonly tasks: readonly string[];
  readonly clock?: Clock;
  /** Event loop, heap, GC and CPU of this process; default true. */
  readonly processMetrics?: boolean;
}

/** From what an in-memory answer takes to a working day. */
const JOB_BUCKETS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600,
  14_400, 28_800,
];
/** Up to the longest long poll. */
const HTTP_BUCKETS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300,
];
const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
const OTHER = "other";
/** Scrapers give up after 10 s by default; a ledger that takes longer than this counts as down. */
const COUNTS_LIMIT_MS = 2_000;

/** How often the event loop's lag is sampled. Every 10 ms, as is the default, costs an idle process half a percent of a core. */
const LAG_EVERY_MS = 50;

export function createMetrics(options: MetricsOptions): Metrics {
  const registry = new Registry();
  if (options.processMetrics ?? true)
    collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_EVERY_MS });
  const readEngine = engineGauges(registry, options.clock ?? systemClock);
  return {
    registry,
    observer: createObserver(registry, options.tasks),
    route: httpMeters(registry),
    async scrape(engine) {
      await readEngine(engine);
      return registry.metrics();
    },
  };
}

/** `make` once per key; keys must come from a bounded set. */
function cached<Key, Child>(make: (key: Key) => Child): (key: Key) => Child {
  const children = new Map<Key, Child>();
  return (key) => {
    let child = children.get(key);
    if (child === undefined) {
      child = make(key);
      children.set(key, child);
    }
    return child;
  };
}

/** The cells of one task's label, made by name at need. */
function taskMeters(registry: Registry) {
  const count = <Label extends string>(name: string, help: string, ...labels: readonly Label[]) =>
    tallyCounter(registry, `jobtable_${name}`, help, ["task", ...labels]);
  const seconds = (name: string, help: string) =>
    tallyHistogram(registry, `jobtable_${name}`, help, ["task", "kind"], JOB_BUCKETS);

  const accepted = count("jobs_accepted_total", "Jobs recorded");
  const refused = count("jobs_refused_total", "Jobs refused: the queue was full");
  const ended = count("jobs_total", "Jobs that ended in this process, by status", "status");
  const requeued = count("jobs_requeued_total", "Attempts whose job went back", "outcome");
  const requestsRefused = count("requests_refused_total", "Requests refused: the line was full");
  const requestsEnded = count("requests_total", "Synchronous requests, by outcome", "outcome");
  const wait = seconds("queue_wait_seconds", "Wait for a worker");
  const run = seconds("run_seconds", "One run of a task");

  return cached((task: string) => ({
    accepted: accepted({ task }),
    refused: refused({ task }),
    ended: cached((outcome: string) =>
      isStatus(outcome) ? ended({ task, status: outcome }) : requeued({ task, outcome }),
    ),
    jobWait: wait({ task, kind: "job" }),
    jobRun: run({ task, kind: "job" }),
    requestRefused: requestsRefused({ task }),
    requestEnded: cached((outcome: string) => requestsEnded({ task, outcome })),
    requestWait: wait({ task, kind: "request" }),
    requestRun: run({ task, kind: "request" }),
  }));
}

function createObserver(registry: Registry, tasks: readonly string[]): EngineObserver {
  const names = new Set([...tasks, ...Object.values(PLAN_TASKS)]);
  const meters = taskMeters(registry);
  const of = (task: string): ReturnType<typeof meters> => meters(names.has(task) ? task : OTHER);
  return {
    jobAccepted(task) {
      of(task).accepted.count += 1;
    },
    jobRefused(task) {
      of(task).refused.count += 1;
    },
    jobStarted(task, waitMs) {
      of(task).jobWait.observe(waitMs / 1_000);
    },
    jobEnded(task, outcome, runMs) {
      const { ended, jobRun } = of(task);
      ended(outcome).count += 1;
      jobRun.observe(runMs / 1_000);
    },
    requestRefused(task) {
      of(task).requestRefused.count += 1;
    },
    requestEnded(task, outcome, waitMs, runMs) {
      const { requestEnded, requestWait, requestRun } = of(task);
      requestEnded(outcome).count += 1;
      requestWait.observe(waitMs / 1_000);
      requestRun.observe(runMs / 1_000);
    },
  };
}

function isStatus(outcome: string): boolean {
  return Object.hasOwn(STATUSES, outcome);
}

function httpMeters(registry: Registry): Metrics["route"] {
  const requests = tallyCounter(
    registry,
    "jobtable_http_requests_total",
    "HTTP requests answered",
    ["method", "route", "status"],
  );
  const seconds = tallyHistogram(
    registry,
    "jobtable_http_request_duration_seconds",
    "From a request's headers to its answer",
    ["method", "route"],
    HTTP_BUCKETS,
  );
  const meters = cached((route: string) =>
    cached((method: string): HttpMeter => {
      const byStatus = cached((status: number) =>
        requests({ method, route, status: String(status) }),
      );
      const duration = seconds({ method, route });
      return {
        ended(status, durationS) {
          byStatus(status).count += 1;
          duration.observe(durationS);
        },
      };
    }),
  );
  return (method, pattern) => meters(pattern)(METHODS.has(method) ? method : OTHER);
}

/** Gauges that are read when someone scrapes. */
function engineGauges(
  registry: Registry,
  clock: Clock,
): (engine: Pick<Engine, "counts" | "health">) => Promise<void> {
  const gauge = (name: string, help: string): Gauge =>
    new Gauge({ name: `jobtable_${name}`, help, registers: [registry] });
  const up = gauge("ledger_up", "1 while the ledger answers");
  const queued = gauge("jobs_queued", "Jobs that wait, in the whole ledger");
  const running = gauge("jobs_running", "Jobs that run, in the whole ledger");
  const recorded = gauge("jobs_recorded", "Jobs in the ledger, the terminal included");
  const oldest = gauge(
    "oldest_queued_age_seconds",
    "Age of the job that waits longest; 0: none waits",
  );
  const busy = gauge("workers_busy", "Slots of this process that run something");
  const available = gauge("workers_available", "Free slots of this process");
  const waiting = gauge("requests_waiting", "Synchronous requests that wait for a slot");
  const ofLedger = [queued, running, recorded, oldest];
  /** One look at a time: a ledger that does not answer must not collect questions. */
  let looking: Promise<Counts | null> | null = null;

  return async (engine) => {
    const health = engine.health();
    busy.set(health.busy);
    available.set(Math.max(0, health.maxWorkers - health.busy));
    waiting.set(health.waiting);
    looking ??= look(engine).finally(() => {
      looking = null;
    });
    const counts = await within(clock, COUNTS_LIMIT_MS, looking, () => null);
    up.set(counts === null ? 0 : 1);
    if (counts === null) {
      // No figure is better than an old one.
      for (const one of ofLedger) one.remove();
      return;
    }
    queued.set(counts.queued);
    running.set(counts.running);
    recorded.set(counts.total);
    oldest.set((counts.oldestQueuedMs ?? 0) / 1_000);
  };
}

async function look(engine: Pick<Engine, "counts">): Promise<Counts | null> {
  try {
    return await engine.counts();
  } catch {
    return null;
  }
}
