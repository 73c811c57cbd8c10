/** What the database thread tells of its ledger. */
import { QUEUED_COUNTED } from "../ledger.js";
import { counts } from "./looking.js";
import type { Answers, OperationOf, Row } from "./protocol.js";
import { integer, JOB_COLUMNS, text } from "./rows.js";
import { findStuck } from "./sweeping.js";
import type { Transaction } from "./transaction.js";
import { waitingGroups, waitingTasks } from "./waiting.js";

const RUN_AT = JOB_COLUMNS.indexOf("run_at");

export function inspect(tx: Transaction, operation: OperationOf<"inspect">): Answers["inspect"] {
  const { run } = tx;
  const about = run.version.get();
  const { stuck } = findStuck(tx, { ...operation, goneWorkerIds: [] });
  return {
    version: text(about?.[0]),
    schemaVersion: integer(about?.[1]),
    counts: counts(tx),
    workers: run.workers.all(),
    oldest: oldestDue(tx),
    stuck: stuck.flatMap(([, jobId]) => {
      const row = run.job.get(text(jobId));
      return row === undefined ? [] : [row];
    }),
    waiting: waitingOf(tx, operation.chunk),
  };
}

function oldestDue({ run, now }: Transaction): Row | null {
  let oldest: Row | null = null;
  for (const { task, priority } of waitingGroups(run, waitingTasks(run))) {
    const row = run.oldestOfGroup.get(task, priority);
    if (row === undefined || text(row[RUN_AT]) > now) continue;
    if (oldest === null || text(row[RUN_AT]) < text(oldest[RUN_AT])) oldest = row;
  }
  return oldest;
}

function waitingOf({ run }: Transaction, limit: number): [task: string, queued: number][] {
  const waiting: [string, number][] = [];
  for (const task of waitingTasks(run)) {
    if (waiting.length >= limit) break;
    waiting.push([task, integer(run.queuedOfTask.get(task, QUEUED_COUNTED)?.[0])]);
  }
  return waiting;
}
