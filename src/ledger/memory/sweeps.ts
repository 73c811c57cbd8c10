/** The memory ledger's maintenance verbs; each moves at most one chunk. */
import type { Job } from "../../job/job.js";
import { eventWhenLost } from "../../job/transition.js";
import {
  STUCK_MESSAGE,
  WAIT_TIMEOUT_MESSAGE,
  type EvictLimit,
  type Ledger,
  type RejectLimit,
  type RescuedJob,
  type RescueLimit,
  type WorkerRecord,
} from "../ledger.js";
import type { Book, Turn } from "./book.js";

export type ExpireLimit = Parameters<Ledger["expire"]>[0];

export function expire(book: Book, { waitLimitMs, chunk }: ExpireLimit, turn: Turn): number {
  let expired = 0;
  while (expired < chunk) {
    const entry = book.waiting.longestWaiting();
    if (entry === undefined) break;
    const waitedMs = turn.nowMs - entry.job.runAtMs;
    if (waitedMs < 0 || waitedMs <= waitLimitMs) break;
    book.apply(entry, { event: "expire", errorMessage: WAIT_TIMEOUT_MESSAGE }, turn);
    expired += 1;
  }
  return expired;
}

export function reject(book: Book, limit: RejectLimit, turn: Turn): number {
  const living = [...book.workers.values()].filter(
    ({ lastHeartbeatMs }) => turn.nowMs - lastHeartbeatMs <= limit.workerTimeoutMs,
  );
  if (!living.some(({ workerId }) => workerId === limit.workerId)) return 0;
  const runnable = new Set(living.flatMap(({ tasks }) => tasks));
  let rejected = 0;
  for (const task of book.waiting.tasks()) {
    if (runnable.has(task)) continue;
    const errorMessage = `UnknownTask: no living worker runs the task ${task}`;
    const room = limit.chunk - rejected;
    for (const entry of book.waiting.overdue(task, limit.graceMs, room, turn.nowMs)) {
      book.apply(entry, { event: "reject", errorMessage }, turn);
      rejected += 1;
    }
  }
  return rejected;
}

/** Which workers are lost and which running jobs stuck, by these limits at this time. */
export function judge(
  book: Book,
  limit: Omit<RescueLimit, "chunk">,
  nowMs: number,
): {
  readonly isLost: (worker: WorkerRecord) => boolean;
  readonly isStuck: (job: Job, workerId: string) => boolean;
} {
  const gone = new Set(limit.goneWorkerIds);
  const isLost = (worker: WorkerRecord): boolean =>
    gone.has(worker.workerId) || nowMs - worker.lastHeartbeatMs > limit.workerTimeoutMs;
  const isStuck = (job: Job, workerId: string): boolean => {
    const silentForMs = nowMs - (job.lastHeartbeatMs ?? job.createdAtMs);
    if (silentForMs > limit.jobTimeoutMs || gone.has(workerId)) return true;
    const worker = book.workers.get(workerId);
    return worker === undefined ? silentForMs > limit.workerTimeoutMs : isLost(worker);
  };
  return { isLost, isStuck };
}

export function rescue(book: Book, limit: RescueLimit, turn: Turn): RescuedJob[] {
  const { isLost, isStuck } = judge(book, limit, turn.nowMs);
  const rescued: RescuedJob[] = [];
  const ownersLeft = new Set<string>();
  for (const entry of [...book.running]) {
    const { jobId, workerId } = entry.job;
    if (workerId === null) continue;
    if (rescued.length >= limit.chunk || !isStuck(entry.job, workerId)) {
      ownersLeft.add(workerId);
      continue;
    }
    const event = eventWhenLost(entry.job);
    book.apply(entry, { event, errorMessage: STUCK_MESSAGE }, turn);
    rescued.push({ jobId, workerId, status: entry.job.status });
  }
  for (const worker of [...book.workers.values()])
    if (isLost(worker) && !ownersLeft.has(worker.workerId)) book.workers.delete(worker.workerId);
  return rescued;
}

/** Whatever ended longest ago goes first, so that age and number are one rule here. */
export function evict(book: Book, { ttlMs, keep, chunk }: EvictLimit, turn: Turn): number {
  let evicted = 0;
  while (evicted < chunk) {
    const entry = book.finished.oldest();
    if (entry === undefined) break;
    const endedForMs = turn.nowMs - (entry.job.finishedAtMs ?? turn.nowMs);
    if (endedForMs <= ttlMs && book.finished.size <= keep) break;
    book.finished.dropOldest();
    book.jobs.forget(entry);
    turn.changedIds.push(entry.job.jobId);
    evicted += 1;
  }
  return evicted;
}
