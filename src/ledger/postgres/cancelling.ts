/** Cancelling, and telling what became of each job that was named. */
import { LedgerError } from "../../job/errors.js";
import { isTerminal } from "../../job/state.js";
import type { CancelOutcome } from "../ledger.js";
import { text } from "../sql/rows.js";
import { textArray } from "./arrays.js";
import type { Means } from "./changes.js";
import { toJob } from "./rows.js";
import type { RunStatement } from "./session.js";

/** A job that goes back to the queue between the two statements is cancelled in the next round. */
const ROUNDS = 5;

export async function cancel(
  { run, changes }: Means,
  jobIds: readonly string[],
): Promise<CancelOutcome[]> {
  const found = new Map<string, CancelOutcome>();
  let left = [...new Set(jobIds)].sort();
  for (let round = 0; left.length > 0; round += 1) {
    if (round >= ROUNDS)
      throw new LedgerError(
        "ledger_unavailable",
        "the jobs to cancel change too fast to tell what becomes of them: try again",
      );
    const moved = (await run("cancel", [textArray(left), ...changes.telling(false)])).map(toJob);
    for (const job of moved)
      found.set(job.jobId, { kind: isTerminal(job.status) ? "cancelled" : "requested", job });
    changes.made(
      moved.map(({ jobId }) => jobId),
      false,
    );
    left = left.filter((jobId) => !found.has(jobId));
    if (left.length > 0) left = await lookAtOthers(run, left, found);
  }
  return inPlace(jobIds, found);
}

/** What was neither queued nor newly asked. Answers those that have become so since. */
async function lookAtOthers(
  run: RunStatement,
  jobIds: readonly string[],
  found: Map<string, CancelOutcome>,
): Promise<string[]> {
  const rows = await run("get", [textArray(jobIds)]);
  const jobs = new Map(rows.map((row) => [text(row[0]), toJob(row)]));
  return jobIds.filter((jobId) => {
    const job = jobs.get(jobId);
    if (job === undefined) found.set(jobId, { kind: "unknown" });
    else if (isTerminal(job.status)) found.set(jobId, { kind: "terminal", job });
    else if (job.cancelRequestedAtMs !== null && job.status === "running")
      found.set(jobId, { kind: "requested", job });
    else return true;
    return false;
  });
}

/** One that is named twice was cancelled by its first mention. */
function inPlace(
  jobIds: readonly string[],
  found: ReadonlyMap<string, CancelOutcome>,
): CancelOutcome[] {
  const named = new Set<string>();
  return jobIds.map((jobId) => {
    const outcome = found.get(jobId) ?? { kind: "unknown" };
    const again = named.has(jobId);
    named.add(jobId);
    return again && outcome.kind === "cancelled" ? { kind: "terminal", job: outcome.job } : outcome;
  });
}
