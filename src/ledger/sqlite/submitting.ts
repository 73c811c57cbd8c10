/** Submitting: the check against the bound and the keys, and the records, in one transaction. */
import { roomBelow, verdictsOn, type Known } from "../admitting.js";
import { AFTER_JOB, text, textOrNull } from "../sql/rows.js";
import type { Answers, Cell, OperationOf, Row } from "./protocol.js";
import { FINGERPRINT_AT, KEY_AT } from "./rows.js";
import type { Transaction } from "./transaction.js";

export function submit(tx: Transaction, operation: OperationOf<"submit">): Answers["submit"] {
  const { maxDepth, whole, jobs } = operation;
  const { queued, running } = tx.counts;
  const depth = queued + running;
  const room = roomBelow(maxDepth, depth);
  if (whole === true || jobs.some((row) => row[KEY_AT] !== null))
    return submitEach(tx, jobs, room, whole === true);
  const admitted = Math.min(room, jobs.length);
  for (const row of jobs.slice(0, admitted)) insert(tx, row);
  if (admitted < jobs.length) refuseUsedIds(tx, jobs.slice(admitted));
  if (admitted > 0) tx.count({ queued: admitted });
  return admitted === jobs.length ? null : { admitted, depth: depth + admitted, others: [] };
}

/** Where there are keys to look for, or all of the call is to be seen before any of it is recorded. */
function submitEach(
  tx: Transaction,
  jobs: readonly Row[],
  room: number,
  whole: boolean,
): Answers["submit"] {
  const asked = jobs.map((row) => ({
    key: textOrNull(row[KEY_AT]),
    fingerprint: textOrNull(row[FINGERPRINT_AT]),
  }));
  const verdicts = verdictsOn(asked, room, whole, (key) => jobWithKey(tx, key));
  const others: (readonly [number, "repeated" | "conflict", Row | number])[] = [];
  const admitted: Row[] = [];
  const refused: Row[] = [];
  refuseIdsTwice(jobs);
  for (const [place, row] of jobs.entries()) {
    const verdict = verdicts[place];
    if (verdict === undefined || verdict.kind === "full") refused.push(row);
    else if (verdict.kind === "admitted") admitted.push(row);
    else others.push([place, verdict.kind, "mate" in verdict ? verdict.mate : verdict.found]);
  }
  for (const row of admitted) insert(tx, row);
  refuseUsedIds(tx, refused);
  tx.count({ queued: admitted.length });
  if (admitted.length === jobs.length) return null;
  const { queued, running } = tx.counts;
  return { admitted: admitted.length, depth: queued + running, others };
}

function jobWithKey(tx: Transaction, key: string): Known<Row> | undefined {
  const found = tx.run.keyed.get(key);
  if (found === undefined) return undefined;
  return { found: found.slice(0, AFTER_JOB), fingerprint: textOrNull(found[AFTER_JOB]) };
}

function insert(tx: Transaction, row: Row): void {
  try {
    tx.run.submit.run(...row);
  } catch (error) {
    if (error instanceof Error && error.message.includes("async_jobs.job_id")) throw usedTwice(row);
    throw error;
  }
}

/** A used id is a bug also where the job was refused. */
function refuseUsedIds(tx: Transaction, refused: readonly Row[]): void {
  refuseIdsTwice(refused);
  for (const row of refused) if (tx.run.look.get(row[0]) !== undefined) throw usedTwice(row);
}

function refuseIdsTwice(rows: readonly Row[]): void {
  const seen = new Set<Cell | undefined>();
  for (const row of rows) {
    if (seen.has(row[0])) throw usedTwice(row);
    seen.add(row[0]);
  }
}

function usedTwice(row: Row): Error {
  return new Error(`job id ${text(row[0])} is used twice: give every job an id of its own`);
}
