/** The verbs that move jobs on behalf of users and owners. */
import { cleanText, MAX_ERROR_CHARS } from "../../job/limits.js";
import { TRANSITIONS, type Status } from "../../job/state.js";
import { attemptMessage } from "../../job/transition.js";
import type { Answers, OperationOf, SettledJob } from "./protocol.js";
import { toIso } from "./rows.js";
import type { Transaction } from "./transaction.js";

export function settle(tx: Transaction, { ends }: OperationOf<"settle">): Answers["settle"] {
  let requeued = 0;
  let ended = 0;
  let otherwise = 0;
  const statuses = ends.map((end) => {
    const status = settleOne(tx, end);
    if (status === "queued") requeued += 1;
    else if (status !== null) ended += 1;
    if (status !== TRANSITIONS[end[3]].to) otherwise += 1;
    return status;
  });
  if (requeued + ended > 0)
    tx.count({ queued: requeued, running: -(requeued + ended), terminal: ended });
  return otherwise === 0 ? null : statuses;
}

/** @returns the status it has now, or null where nothing happened. */
function settleOne(tx: Transaction, end: SettledJob): Status | null {
  const { run, now } = tx;
  const [jobId, workerId, attempt, event, text, ms] = end;
  const ended = ({ changes }: { readonly changes: number }): Status | null =>
    changes > 0 ? TRANSITIONS[event].to : null;
  const stopped = ({ changes }: { readonly changes: number }): Status | null =>
    changes > 0 ? TRANSITIONS.stop.to : null;
  switch (event) {
    case "succeed":
      return ended(run.succeed.run(now, text, jobId, workerId, attempt));
    case "fail":
      return ended(run.fail.run(now, message(text), jobId, workerId, attempt));
    case "time_out":
      return ended(run.timeOut.run(now, message(text), jobId, workerId, attempt));
    case "stop":
      return ended(run.stop.run(now, jobId, workerId, attempt));
    case "retry": {
      const dueAt = toIso(tx.nowMs + Math.max(0, ms ?? 0));
      const error = text ?? "";
      const values = [dueAt, message(error), tx.nowMs, attemptMessage(error)];
      return (
        ended(run.retry.run(...values, jobId, workerId, attempt)) ??
        stopped(run.stopRequested.run(now, jobId, workerId, attempt))
      );
    }
    case "release": {
      const claim = [jobId, workerId, attempt, ms === null ? null : toIso(ms)];
      return ended(run.release.run(...claim)) ?? stopped(run.stopReleased.run(now, ...claim));
    }
    default:
      return event satisfies never;
  }
}

function message(text: string | null): string {
  return cleanText(text ?? "", MAX_ERROR_CHARS);
}

export function cancel(tx: Transaction, jobIds: readonly string[]): Answers["cancel"] {
  const { run, now } = tx;
  return jobIds.map((jobId) => {
    const cancelled = run.cancel.get(now, jobId);
    if (cancelled !== undefined) {
      tx.count({ queued: -1, terminal: 1 });
      return { kind: "cancelled", job: cancelled };
    }
    const requested = run.requestCancel.get(now, jobId);
    if (requested !== undefined) return { kind: "requested", job: requested };
    const ended = run.job.get(jobId);
    return ended === undefined ? { kind: "unknown", job: [] } : { kind: "terminal", job: ended };
  });
}

export function heartbeat(
  tx: Transaction,
  { workerId, worker, jobs }: OperationOf<"heartbeat">,
): Answers["heartbeat"] {
  const { run, now } = tx;
  run.beatWorker.run(...worker, now, now);
  const cancelRequested: string[] = [];
  const lost: string[] = [];
  for (const [jobId, attempt, progressJson] of jobs) {
    const row = run.beatJob.get(now, progressJson, jobId, workerId, attempt);
    if (row === undefined) lost.push(jobId);
    else if (row[0] === 1) cancelRequested.push(jobId);
  }
  return { cancelRequested, lost };
}
