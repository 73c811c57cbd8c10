/** Between the verbs of the contract and what crosses to the thread, where it takes more than a line. */
import type { Job } from "../../job/job.js";
import type { ClaimedJob, ListQuery, Settlement, SubmitOutcome } from "../ledger.js";
import { inOrderOfClaims, text } from "../sql/rows.js";
import type { LookOf, Recent } from "../sql/watchers.js";
import type { Answers, Cell, OperationOf, SettledJob } from "./protocol.js";
import { integer, toClaimedJob, toJob } from "./rows.js";

/** @param records the jobs of the call, as they are where they were admitted. */
export function toSubmitOutcomes(
  records: readonly Job[],
  { admitted, depth, others }: NonNullable<Answers["submit"]>,
): SubmitOutcome[] {
  const byPlace = new Map(others.map(([place, kind, of]) => [place, { kind, of }]));
  let left = admitted;
  return records.map((job, place) => {
    const other = byPlace.get(place);
    if (other !== undefined) {
      const { kind, of } = other;
      return { kind, job: typeof of === "number" ? (records[of] ?? job) : toJob(of) };
    }
    left -= 1;
    return left >= 0 ? { kind: "accepted", job } : { kind: "full", depth };
  });
}

export function toClaimedJobs(cells: Answers["claim"], workerId: string): ClaimedJob[] {
  const claimed: ClaimedJob[] = [];
  for (let at = 0; at < cells.length; at += 2) {
    const job = toClaimedJob(JSON.parse(text(cells[at])) as Cell[], workerId);
    claimed.push({ job, payloadJson: text(cells[at + 1]) });
  }
  return claimed.sort((a, b) => inOrderOfClaims(a.job, b.job));
}

export function toRecent(answer: Answers["recent"]): Recent | null {
  if (answer === null) return null;
  const { ended, running, forgotten } = answer;
  return { ended: toLooks(ended), running: toLooks(running), forgotten };
}

/** @param cells ids and numbers in turn. */
function* toLooks(cells: readonly Cell[]): Iterable<LookOf> {
  for (let at = 0; at < cells.length; at += 2) yield [text(cells[at]), integer(cells[at + 1])];
}

export function toList({ statuses, task, planId, limit, cursor }: ListQuery): OperationOf<"list"> {
  return {
    verb: "list",
    statuses: statuses ?? null,
    task: task ?? null,
    planId: planId ?? null,
    limit,
    cursor: cursor ?? null,
  };
}

export function toSettledJob({ jobId, workerId, attempt, end }: Settlement): SettledJob {
  switch (end.event) {
    case "succeed":
      return [jobId, workerId, attempt, end.event, end.resultJson, 0];
    case "fail":
    case "time_out":
      return [jobId, workerId, attempt, end.event, end.errorMessage, 0];
    case "retry":
      return [jobId, workerId, attempt, end.event, end.errorMessage, end.delayMs];
    case "release":
      return [jobId, workerId, attempt, end.event, null, end.startedAtMs];
    case "stop":
      return [jobId, workerId, attempt, end.event, null, 0];
    default:
      return end satisfies never;
  }
}
