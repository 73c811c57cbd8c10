/** What the memory ledger tells of itself. */
import { QUEUED_COUNTED, type Counts, type InspectLimit, type LedgerReport } from "../ledger.js";
import type { Book } from "./book.js";
import { judge } from "./sweeps.js";

export function countsOf({ waiting, running, jobs }: Book, nowMs: number): Counts {
  const dueAtMs = waiting.longestWaiting()?.job.runAtMs;
  return {
    queued: waiting.size,
    running: running.size,
    total: jobs.size,
    oldestQueuedMs: dueAtMs === undefined || dueAtMs > nowMs ? null : nowMs - dueAtMs,
  };
}

export function inspect(book: Book, limit: InspectLimit, nowMs: number): LedgerReport {
  const { waiting, running, workers } = book;
  const longest = waiting.longestWaiting()?.job;
  const { isStuck } = judge(book, { ...limit, goneWorkerIds: [] }, nowMs);
  return {
    nowMs,
    software: "memory",
    schemaVersion: null,
    counts: countsOf(book, nowMs),
    workers: [...workers.values()],
    oldestQueued: longest === undefined || longest.runAtMs > nowMs ? null : longest,
    stuck: [...running]
      .map(({ job }) => job)
      .filter((job) => job.workerId !== null && isStuck(job, job.workerId))
      .slice(0, limit.chunk),
    waiting: waiting
      .tasks()
      .sort()
      .slice(0, limit.chunk)
      .map((task) => ({ task, queued: Math.min(waiting.sizeOf(task), QUEUED_COUNTED) })),
  };
}
