/** The maintenance verbs; each moves at most one chunk, and several processes may do it at once. */
import { cleanText, MAX_ERROR_CHARS } from "../../job/limits.js";
import { TRANSITIONS } from "../../job/state.js";
import { STUCK_MESSAGE, WAIT_TIMEOUT_MESSAGE } from "../ledger.js";
import { text, toTasks } from "../sql/rows.js";
import type { Answers, OperationOf, Row } from "./protocol.js";
import { integer, toIso } from "./rows.js";
import type { Transaction } from "./transaction.js";
import { overdue, waitingTasks } from "./waiting.js";

/** Larger than any time as text. */
const AFTER_ALL_TIMES = "~";
/** Bounds one transaction to some 100 ms, whatever is asked for. */
const LARGEST_CHUNK = 10_000;
/** Bounds what one transaction forgets: every page of a large payload is read as it is freed. */
const LARGEST_CHUNK_BYTES = 64 * 1024 * 1024;

export function expire(tx: Transaction, { waitLimitMs, chunk }: OperationOf<"expire">): string[] {
  const { run, now } = tx;
  const cutoff = toIso(tx.nowMs - Math.max(0, waitLimitMs));
  const expired = overdue(run, waitingTasks(run), cutoff, chunkSize(chunk));
  for (const { rowid } of expired) run.expire.run(now, WAIT_TIMEOUT_MESSAGE, rowid);
  tx.count({ queued: -expired.length, terminal: expired.length });
  return expired.map(({ jobId }) => jobId);
}

export function reject(tx: Transaction, operation: OperationOf<"reject">): string[] {
  const { run, now } = tx;
  const cutoff = toIso(tx.nowMs - Math.max(0, operation.graceMs));
  const rejected: string[] = [];
  const living = tx.run.living.all(toIso(tx.nowMs - operation.workerTimeoutMs));
  if (!living.some(([workerId]) => workerId === operation.workerId)) return [];
  const runnable = new Set(living.flatMap(([, tasks]) => toTasks(text(tasks))));
  for (const task of [...waitingTasks(run)]) {
    if (runnable.has(task)) continue;
    const message = cleanText(
      `UnknownTask: no living worker runs the task ${task}`,
      MAX_ERROR_CHARS,
    );
    for (const { rowid, jobId } of overdue(
      run,
      [task],
      cutoff,
      chunkSize(operation.chunk) - rejected.length,
    )) {
      run.reject.run(now, message, rowid);
      rejected.push(jobId);
    }
  }
  tx.count({ queued: -rejected.length, terminal: rejected.length });
  return rejected;
}

/** Running jobs that are stuck, one chunk of them, and the workers that are there or lost. */
export function findStuck(
  tx: Transaction,
  operation: Omit<OperationOf<"rescue">, "verb">,
): { readonly rows: Row[]; readonly present: string[]; readonly lost: ReadonlySet<string> } {
  const { run } = tx;
  const gone = new Set(operation.goneWorkerIds);
  const silentSince = toIso(tx.nowMs - operation.workerTimeoutMs);
  const present: string[] = [];
  const lost = new Set(gone);
  for (const row of run.workers.all()) {
    const workerId = text(row[0]);
    present.push(workerId);
    if (text(row[11]) < silentSince) lost.add(workerId);
  }
  const rows = run.stuck.all(
    toIso(tx.nowMs - operation.jobTimeoutMs),
    JSON.stringify([...lost]),
    JSON.stringify(present),
    silentSince,
    chunkSize(operation.chunk),
  );
  return { rows, present, lost };
}

export function rescue(tx: Transaction, operation: OperationOf<"rescue">): Answers["rescue"] {
  const { run } = tx;
  const { rows, present, lost } = findStuck(tx, operation);
  const rescued = rows.map((row) => free(tx, row));
  for (const workerId of present) if (lost.has(workerId)) run.forgetWorker.run(workerId, workerId);
  return rescued;
}

/** @param row as the statement `stuck` gives it. */
function free(tx: Transaction, row: Row): Answers["rescue"][number] {
  const { run, now } = tx;
  const [rowid, jobId, workerId] = [integer(row[0]), text(row[1]), text(row[2])];
  if (row[4] === 1) {
    run.bury.run(now, rowid);
    tx.count({ running: -1, terminal: 1 });
    return [jobId, workerId, TRANSITIONS.bury.to];
  }
  if (row[3] === 1) {
    run.rescue.run(now, STUCK_MESSAGE, tx.nowMs, STUCK_MESSAGE, rowid);
    tx.count({ running: -1, queued: 1 });
    return [jobId, workerId, TRANSITIONS.rescue.to];
  }
  run.strand.run(now, STUCK_MESSAGE, rowid);
  tx.count({ running: -1, terminal: 1 });
  return [jobId, workerId, TRANSITIONS.strand.to];
}

export function evict(
  tx: Transaction,
  { ttlMs, keep, chunk }: OperationOf<"evict">,
): Answers["evict"] {
  const limit = chunkSize(chunk);
  const old = forget(tx, toIso(tx.nowMs - ttlMs), limit, LARGEST_CHUNK_BYTES);
  const jobIds = [...old.jobIds];
  let { more } = old;
  const beyond = tx.counts.terminal - jobIds.length - Math.max(0, keep);
  const room = Math.min(limit - jobIds.length, beyond);
  if (room > 0 && !more) {
    const oldest = forget(tx, AFTER_ALL_TIMES, room, LARGEST_CHUNK_BYTES - old.bytes);
    jobIds.push(...oldest.jobIds);
    more = oldest.more;
  }
  if (jobIds.length > 0) tx.count({ terminal: -jobIds.length });
  return { jobIds, more };
}

/** As many as `maxBytes` allow, but one at least; `more`: they, not the limit, were what stopped it. */
function forget(
  { run }: Transaction,
  before: string,
  limit: number,
  maxBytes: number,
): { readonly jobIds: string[]; readonly bytes: number; readonly more: boolean } {
  let [count, bytes, more] = [0, 0, false];
  for (const row of run.evictBytes.iterate(before, limit)) {
    bytes += integer(row[0]);
    more = count > 0 && bytes > maxBytes;
    if (more) break;
    count += 1;
  }
  const jobIds = run.evict.all(before, count).map((row) => text(row[0]));
  return { jobIds, bytes, more };
}

/** A negative limit would mean none to SQLite. */
export function chunkSize(chunk: number): number {
  return Math.min(Math.max(0, Math.floor(chunk)), LARGEST_CHUNK);
}
