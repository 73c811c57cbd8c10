/**
 * A jobtable for tests of the program that uses it: its jobs are in memory, all tasks run in this
 * process, it starts by itself at the first call, and `idle` tells when all is done, so that a test
 * needs no server, no file and no sleep. It is the same engine otherwise: inputs are checked, time
 * limits hold, what throws is tried again. It has no plans.
 */
import { formatJobId } from "../job/id.js";
import type { Job } from "../job/job.js";
import { MAX_PAGE } from "../job/limits.js";
import type { Ledger } from "../ledger/ledger.js";
import { systemClock } from "../runtime/clock.js";
import { SkippingClock } from "../runtime/skipping-clock.js";
import { within } from "../runtime/within.js";
import { defineForTest } from "../task/definition.js";
import { createTaskRegistry } from "../task/registry.js";
import type { Task } from "../task/task.js";
import type { TestJobtable, TestJobtableOptions } from "./api.js";
import { LibraryJobtable } from "./library.js";

const IDLE_WITHIN_MS = 4_000;
/**
 * What a test has run stays for it to look at, though its clock may jump by years: the most that the
 * settings allow, and as many jobs as a store on disk keeps.
 */
const KEPT = { asyncJobTtlMs: 10 * 365 * 86_400_000, asyncMaxCompleted: 100_000 };
/** Nothing is told of more of them. */
const SHOWN = 5;

/**
 * Tasks that say `isolation: "thread"` run in this process too.
 * @throws JobtableError `invalid_task`, as `createJobtable`.
 */
export function createTestJobtable<const Tasks extends readonly Task[]>({
  tasks,
  logger,
  ...given
}: TestJobtableOptions<Tasks>): TestJobtable<Tasks> {
  const settings = { ...KEPT, ...given };
  const registry = createTaskRegistry(defineForTest(tasks));
  const clock = new SkippingClock();
  const jobtable = new LibraryJobtable<Tasks>(async () => {
    const { openEngine } = await import("../compose.js");
    const options = { store: "memory", tasks: registry, settings, worker: true, logger, clock };
    const opened = await openEngine(options);
    await opened.engine.start();
    return { ...opened, plans: null };
  });
  return Object.assign(jobtable, {
    async idle({ timeoutMs = IDLE_WITHIN_MS }: { readonly timeoutMs?: number } = {}) {
      const { engine, ledger } = await jobtable.opened();
      const { pollIntervalMs } = engine.health();
      await idle({ ledger, clock, pollIntervalMs, timeoutMs });
    },
  });
}

interface IdleParts {
  readonly ledger: Ledger;
  readonly clock: SkippingClock;
  readonly pollIntervalMs: number;
  readonly timeoutMs: number;
}

/** Its own limit is in real time. */
async function idle({ ledger, clock, pollIntervalMs, timeoutMs }: IdleParts): Promise<void> {
  const untilMs = systemClock.monotonicMs() + timeoutMs;
  for (let jobs = await unended(ledger); jobs.length > 0; jobs = await unended(ledger)) {
    let hinted: () => void = () => undefined;
    const change = new Promise<void>((resolve) => (hinted = resolve));
    const unwatch = jobs.map(({ jobId }) => ledger.watch(jobId, hinted));
    try {
      // Subscribed first, so that no change falls between.
      if (standing(await unended(ledger)) !== standing(jobs)) continue;
      skipToDue(jobs, clock, pollIntervalMs);
      const leftMs = untilMs - systemClock.monotonicMs();
      await within(systemClock, leftMs, change, () => Promise.reject(tooLate(jobs, timeoutMs)));
    } finally {
      for (const stop of unwatch) stop();
    }
  }
}

async function unended(ledger: Ledger): Promise<Job[]> {
  const jobs: Job[] = [];
  for (let cursor: string | undefined; ;) {
    const query = { statuses: ["queued", "running"], limit: MAX_PAGE } as const;
    const page = await ledger.list(cursor === undefined ? query : { ...query, cursor });
    jobs.push(...page.jobs);
    if (page.nextCursor === undefined) return jobs;
    cursor = page.nextCursor;
  }
}

/** What a change changes. */
function standing(jobs: readonly Job[]): string {
  return jobs.map(({ jobId, status, attempt }) => `${jobId} ${status} ${String(attempt)}`).join();
}

/** Where all jobs are due later: to the first of them, and as far as the worker's next look for work. */
function skipToDue(jobs: readonly Job[], clock: SkippingClock, pollIntervalMs: number): void {
  const nowMs = clock.nowMs();
  if (!jobs.every(({ status, runAtMs }) => status === "queued" && runAtMs > nowMs)) return;
  const firstMs = Math.min(...jobs.map(({ runAtMs }) => runAtMs));
  clock.skip(Math.max(firstMs - nowMs, pollIntervalMs));
}

function tooLate(jobs: readonly Job[], timeoutMs: number): Error {
  const shown = jobs
    .slice(-SHOWN)
    .map(({ jobId, task, status }) => `${formatJobId(jobId)} (${task}, ${status})`);
  if (jobs.length > SHOWN) shown.push(`and ${String(jobs.length - SHOWN)} more`);
  return new Error(`idle: not after ${String(timeoutMs)} ms; left: ${shown.join(", ")}`);
}
