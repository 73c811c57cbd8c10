/** The maintenance; each sweep moves at most one chunk, and several processes may do it at once. */
import { isTerminal } from "../../job/state.js";
import {
  STUCK_MESSAGE,
  WAIT_TIMEOUT_MESSAGE,
  type EvictLimit,
  type Ledger,
  type RejectLimit,
  type RescuedJob,
  type RescueLimit,
} from "../ledger.js";
import { text, toStatus } from "../sql/rows.js";
import { textArray } from "./arrays.js";
import type { Means } from "./changes.js";
import { chunkSize, storableAgeMs, type Row } from "./rows.js";

/**
 * Bounds what one statement forgets, whatever the chunk: it reads and marks every piece of a large
 * payload, and a statement that takes ten seconds is stopped and has done nothing.
 */
const LARGEST_CHUNK_BYTES = 64 * 1024 * 1024;

/** The task's name follows. */
const UNKNOWN_TASK = "UnknownTask: no living worker runs the task ";

export async function expire(
  means: Means,
  { waitLimitMs, chunk }: Parameters<Ledger["expire"]>[0],
): Promise<number> {
  const rows = await means.run("expire", [
    chunkSize(chunk),
    storableAgeMs(Math.max(0, waitLimitMs)),
    ...means.changes.telling(false),
    WAIT_TIMEOUT_MESSAGE,
  ]);
  return swept(means, rows);
}

export async function reject(
  means: Means,
  { workerId, graceMs, workerTimeoutMs, chunk }: RejectLimit,
): Promise<number> {
  const rows = await means.run("reject", [
    chunkSize(chunk),
    storableAgeMs(Math.max(0, graceMs)),
    ...means.changes.telling(false),
    UNKNOWN_TASK,
    storableAgeMs(workerTimeoutMs),
    workerId,
  ]);
  return swept(means, rows);
}

export async function evict(means: Means, limit: EvictLimit): Promise<number> {
  const { ttlMs, keep, chunk } = limit;
  const rows = await means.run("evict", [
    chunkSize(chunk),
    storableAgeMs(ttlMs),
    Math.min(Math.max(0, Math.floor(keep)), Number.MAX_SAFE_INTEGER),
    LARGEST_CHUNK_BYTES,
    ...means.changes.telling(false),
  ]);
  const count = swept(means, rows);
  if (rows[0]?.[1] !== "t") return count;
  // What is forgotten stays so: should the rest fail, the next sweep says why.
  return count + (await evict(means, { ...limit, chunk: chunk - count }).catch(() => 0));
}

export async function rescue({ run, changes }: Means, limit: RescueLimit): Promise<RescuedJob[]> {
  const rows = await run("rescue", [
    chunkSize(limit.chunk),
    storableAgeMs(limit.workerTimeoutMs),
    textArray(limit.goneWorkerIds),
    storableAgeMs(limit.jobTimeoutMs),
    ...changes.telling(true),
    STUCK_MESSAGE,
  ]);
  const rescued = rows.map(([jobId, workerId, status]) => ({
    jobId: text(jobId),
    workerId: text(workerId),
    status: toStatus(status),
  }));
  changes.made(
    rescued.map(({ jobId }) => jobId),
    rescued.some(({ status }) => !isTerminal(status)),
  );
  return rescued;
}

function swept({ changes }: Means, rows: readonly Row[]): number {
  changes.made(
    rows.map(([jobId]) => text(jobId)),
    false,
  );
  return rows.length;
}
