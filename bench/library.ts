/** The library in one process: submits, drains and the way from submit to start. Every run has a fresh store and the defaults, the admission bound apart. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createJobtable, task } from "../dist/index.js";
import { percentile, ratePerSecond } from "./measure.js";

const UNBOUNDED = 100_000_000;
const IN_FLIGHT = 64;
/** Between two submits of the latency benchmark: long enough that everything is idle again. */
const PAUSE_MS = 5;

type Store = "memory" | "sqlite";

interface Noop {
  readonly n: number;
}

function input(n: number): { n: number; email: string; template: string } {
  return { n, email: `user${String(n)}@example.com`, template: "welcome" };
}

async function withJobtable(
  store: Store,
  options: { readonly asyncMaxQueue: number; readonly onRun: (n: number) => void },
  body: (jobtable: Opened) => Promise<number>,
): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "jobtable-bench-"));
  const jobtable = open(
    store === "memory" ? "memory" : `sqlite:${join(folder, "jobs.db")}`,
    options,
  );
  try {
    return await body(jobtable);
  } finally {
    await jobtable.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

type Opened = ReturnType<typeof open>;

function open(
  store: string,
  options: { readonly asyncMaxQueue: number; readonly onRun: (n: number) => void },
) {
  const noop = task({
    name: "noop",
    run(given: unknown) {
      options.onRun((given as Noop).n);
      return { ok: true };
    },
  });
  return createJobtable({
    store,
    tasks: [noop],
    asyncMaxQueue: options.asyncMaxQueue,
    asyncTimeoutMs: 0,
  });
}

export function submitRateInProcess(jobs: number, asyncMaxQueue: number): Promise<number> {
  return withJobtable("sqlite", { asyncMaxQueue, onRun: () => undefined }, (jobtable) =>
    ratePerSecond(jobs, IN_FLIGHT, (n) => jobtable.submit("noop", input(n))),
  );
}

export function memorySubmitRate(jobs: number): Promise<number> {
  return withJobtable("memory", { asyncMaxQueue: UNBOUNDED, onRun: () => undefined }, (jobtable) =>
    ratePerSecond(jobs, IN_FLIGHT, (n) => jobtable.submit("noop", input(n))),
  );
}

/** Jobs per second from start() until every end is on record. */
export function drainRate(store: Store, jobs: number): Promise<number> {
  return withJobtable(
    store,
    { asyncMaxQueue: UNBOUNDED, onRun: () => undefined },
    async (jobtable) => {
      await ratePerSecond(jobs, 1_000, (n) => jobtable.submit("noop", input(n)));
      const began = performance.now();
      await jobtable.start();
      for (;;) {
        const { queued, running } = await jobtable.counts();
        if (queued + running === 0) break;
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      return (jobs / (performance.now() - began)) * 1_000;
    },
  );
}

/** @param share 0.5 for p50. From the call of submit to the handler's first line, one job at a time. */
export function latencyMs(store: Store, jobs: number, share: number): Promise<number> {
  let started: (at: number) => void = () => undefined;
  return withJobtable(
    store,
    {
      asyncMaxQueue: UNBOUNDED,
      onRun: () => {
        started(performance.now());
      },
    },
    async (jobtable) => {
      await jobtable.start();
      const latencies: number[] = [];
      for (let n = 0; n < jobs; n += 1) {
        const start = new Promise<number>((resolve) => (started = resolve));
        const called = performance.now();
        await jobtable.submit("noop", input(n));
        latencies.push((await start) - called);
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
      return percentile(latencies.slice(20), share);
    },
  );
}
