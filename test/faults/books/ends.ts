/** What was promised against what became of it: every accepted job ended, once, as it could. */
import { STATES } from "../../../src/http/wire.js";
import { isTerminal } from "../../../src/job/state.js";
import type { Job } from "../../../src/job/job.js";
import { MAX_ATTEMPT_ERRORS } from "../../../src/job/limits.js";
import { STUCK_MESSAGE } from "../../../src/ledger/ledger.js";
import type { Accepted } from "../load/submitters.js";
import type { Performed } from "../tasks/performance.js";
import type { Books } from "./books.js";

/** Everything accepted is on record under its key, and nothing else is. */
export function* lostJobs({ accepted, jobs }: Books): Generator<string> {
  for (const { jobId, plan } of accepted.values()) {
    const key = jobs.get(jobId)?.idempotencyKey;
    if (key === undefined) yield `${jobId} was accepted and is not on record`;
    else if (key !== plan.key)
      yield `${jobId} was accepted as ${plan.key} and is on record as ${String(key)}`;
  }
  for (const { jobId, idempotencyKey } of jobs.values())
    if (!accepted.has(jobId))
      yield `${jobId} (${String(idempotencyKey)}) is on record, and nobody was told of it`;
}

/** A delay is counted by the ledger's clock. */
export function* wrongDelays({ accepted, jobs }: Books): Generator<string> {
  for (const { jobId, plan } of accepted.values()) {
    const job = jobs.get(jobId);
    // A later attempt has another time, also one that a cancel came before.
    if (job === undefined || job.attempt > 1 || job.status === "cancelled") continue;
    const delayMs = job.runAtMs - job.createdAtMs;
    if (delayMs !== plan.delayMs)
      yield `${jobId} was to be delayed by ${String(plan.delayMs)} ms, and was by ${String(delayMs)}`;
    if (job.startedAtMs !== null && job.startedAtMs < job.runAtMs)
      yield `${jobId} was started ${String(job.runAtMs - job.startedAtMs)} ms early`;
  }
}

/** Nothing waits or runs, and the counts agree with the records. */
export function* unfinishedJobs({ jobs, counts }: Books): Generator<string> {
  for (const { jobId, status, attempt, workerId } of jobs.values())
    if (!isTerminal(status))
      yield `${jobId} is still ${status} (attempt ${String(attempt)}, ${String(workerId)})`;
  const { queued, running, total } = counts;
  if (queued !== 0 || running !== 0 || total !== jobs.size)
    yield `the counts say ${String(queued)} queued, ${String(running)} running, ${String(total)} in all; there are ${String(jobs.size)} records`;
}

/** Each ended in a way that its plan allows, with the message that belongs to it. */
export function* wrongEnds({ accepted, jobs }: Books): Generator<string> {
  for (const job of jobs.values()) {
    const why = wrongEnd(job, accepted.get(job.jobId));
    if (why !== null)
      yield `${job.jobId} ${job.status} with attempt ${String(job.attempt)} of ${String(job.maxAttempts)} and ${String(job.errorMessage)}: ${why}`;
  }
}

function wrongEnd(job: Job, accepted: Accepted | undefined): string | null {
  const part = accepted?.plan.part;
  if (accepted?.cancel === "ended" && job.status !== "cancelled")
    return "its canceller was told that it is cancelled";
  switch (job.status) {
    case "succeeded":
      if (part !== undefined && job.attempt <= part.fails) return "that attempt was told to fail";
      return job.errorMessage === null ? null : "it has an error";
    case "failed":
      if (job.errorMessage === STUCK_MESSAGE)
        return job.attempt === job.maxAttempts ? null : "attempts were left";
      if (part === undefined) return null;
      if (job.errorMessage !== `Error: told to fail ${String(part.n)}`) return "nobody told it to";
      return job.attempt <= part.fails ? null : "that attempt was not told to fail";
    case "cancelled":
      return accepted?.cancel !== "none" ? null : "nobody cancelled it";
    case "timed_out":
      return "it had all the time it needed";
    case "queued":
    case "running":
      return null;
    default:
      return job.status satisfies never;
  }
}

/** Every attempt but the last one says why there was another: its worker was lost, or it was told to fail. */
export function* wrongTrails({ accepted, jobs }: Books): Generator<string> {
  for (const { jobId, status, attempt, attemptErrors } of jobs.values()) {
    // One that was cancelled while it waited has no last attempt.
    if (status === "cancelled") continue;
    const earlier = Math.max(0, attempt - 1);
    if (attemptErrors.length !== Math.min(earlier, MAX_ATTEMPT_ERRORS))
      yield `${jobId} ended with attempt ${String(attempt)} and tells of ${String(attemptErrors.length)} before`;
    const told = `Error: told to fail ${String(accepted.get(jobId)?.plan.part.n)}`;
    for (const { attempt: failed, errorMessage } of attemptErrors)
      if (errorMessage !== STUCK_MESSAGE && errorMessage !== told)
        yield `${jobId} says of attempt ${String(failed)}: ${errorMessage}`;
  }
}

/** A result is that of its own job, made by the run and the worker that the record names. */
export function* wrongResults({ accepted, jobs, results, idOfLife }: Books): Generator<string> {
  for (const [jobId, result] of results) {
    const { n, attempt, worker } = result as Performed;
    const job = jobs.get(jobId);
    const part = accepted.get(jobId)?.plan.part;
    if (part !== undefined && n !== part.n)
      yield `${jobId} has the result of job ${String(n)}, and is ${String(part.n)}`;
    if (attempt !== job?.attempt)
      yield `${jobId} ended with attempt ${String(job?.attempt)}, its result is of ${String(attempt)}`;
    const id = idOfLife.get(worker);
    if (id !== undefined && id !== job?.workerId)
      yield `${jobId} was ended by ${String(job?.workerId)}, its result is of ${id} (${worker})`;
  }
}

/** What waiters saw is what stands in the ledger, for an end is one for good. */
export function* wrongSightings({ sightings, jobs, results }: Books): Generator<string> {
  for (const { accepted, state, error, data } of sightings) {
    const { jobId } = accepted;
    const job = jobs.get(jobId);
    if (job === undefined) continue;
    if (state !== STATES[job.status]) yield `${jobId} was seen ${state}, and is ${job.status}`;
    if (error !== job.errorMessage)
      yield `${jobId} was seen with ${String(error)}, and has ${String(job.errorMessage)}`;
    if (JSON.stringify(data) !== JSON.stringify(results.get(jobId)))
      yield `${jobId} was seen with the result ${JSON.stringify(data)}, and has another`;
  }
}
