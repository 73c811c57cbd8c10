/** The memory ledger's looks at all of it. */
import type { Job } from "../../job/job.js";
import type { Counts, InspectLimit, LedgerReport } from "../ledger.js";
import type { Book } from "./book.js";
import { judge } from "./sweeps.js";

export function counts(book: Book, nowMs: number): Counts {
  const oldest = oldestDue(book, nowMs);
  return {
    queued: book.waiting.size,
    running: book.running.size,
    total: book.jobs.size,
    oldestQueuedMs: oldest === null ? null : nowMs - oldest.runAtMs,
  };
}

export function inspect(book: Book, limit: InspectLimit, nowMs: number): LedgerReport {
  const { isStuck } = judge(book, { ...limit, goneWorkerIds: [] }, nowMs);
  const chunk = Math.max(0, Math.floor(limit.chunk));
  const stuck = [...book.running]
    .map(({ job }) => job)
    .filter((job) => job.workerId !== null && isStuck(job, job.workerId));
  const waiting = book.waiting
    .tasks()
    .map((task) => ({ task, queued: book.waiting.sizeOf(task) }))
    .sort((a, b) => b.queued - a.queued || (a.task < b.task ? -1 : 1));
  return {
    nowMs,
    software: "memory",
    schemaVersion: null,
    counts: counts(book, nowMs),
    workers: [...book.workers.values()],
    oldestQueued: oldestDue(book, nowMs),
    stuck: stuck.sort((a, b) => (a.jobId < b.jobId ? -1 : 1)).slice(0, chunk),
    waiting: waiting.slice(0, chunk),
  };
}

function oldestDue(book: Book, nowMs: number): Job | null {
  const oldest = book.waiting.longestWaiting()?.job;
  return oldest === undefined || oldest.runAtMs > nowMs ? null : oldest;
}
