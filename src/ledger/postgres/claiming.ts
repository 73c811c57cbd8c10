/** What workers call besides settle: the claim, and the beat that keeps it. */
import type { ClaimedJob, ClaimRequest, HeartbeatAnswer, JobBeat, WorkerBeat } from "../ledger.js";
import { CLAIMED_COLUMNS, inOrderOfClaims, text } from "../sql/rows.js";
import { int4Array, textArray, unlessAll } from "./arrays.js";
import type { Means } from "./changes.js";
import { chunkSize, toClaimedJob } from "./rows.js";
import type { RunStatement } from "./session.js";

const PAYLOAD = CLAIMED_COLUMNS.length;

export async function claim(
  { run, changes }: Means,
  { workerId, tasks, limit }: ClaimRequest,
): Promise<ClaimedJob[]> {
  const size = chunkSize(limit);
  if (size === 0 || tasks.length === 0) return [];
  const rows = await run("claim", [workerId, textArray(tasks), size, ...changes.telling(false)]);
  const claimed = rows
    .map((row) => ({ job: toClaimedJob(row, workerId), payloadJson: text(row[PAYLOAD]) }))
    .sort((a, b) => inOrderOfClaims(a.job, b.job));
  changes.made(
    claimed.map(({ job }) => job.jobId),
    false,
  );
  return claimed;
}

export async function heartbeat(
  run: RunStatement,
  worker: WorkerBeat,
  jobs: readonly JobBeat[],
): Promise<HeartbeatAnswer> {
  const inOrder = [...jobs].sort((a, b) => (a.jobId < b.jobId ? -1 : 1));
  const rows = await run("heartbeat", [
    worker.workerId,
    worker.host,
    worker.pid,
    worker.pidStamp,
    worker.state,
    JSON.stringify(worker.tasks),
    worker.maxWorkers,
    worker.processed,
    worker.failed,
    worker.cancelled,
    textArray(inOrder.map(({ jobId }) => jobId)),
    int4Array(inOrder.map(({ attempt }) => attempt)),
    textArray(unlessAll(inOrder, ({ progressJson }) => progressJson ?? null, null)),
  ]);
  const asked = new Map(rows.map(([jobId, wasAsked]) => [jobId, wasAsked === "t"]));
  const jobIds = jobs.map(({ jobId }) => jobId);
  return {
    cancelRequested: jobIds.filter((jobId) => asked.get(jobId) === true),
    lost: jobIds.filter((jobId) => !asked.has(jobId)),
  };
}
