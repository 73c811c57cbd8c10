/** Submitting: what is sent, and what the answer means. */
import type { Job, NewJob } from "../../job/job.js";
import { DEFAULT_QUEUE, newlyQueued } from "../../job/transition.js";
import type { AdmissionBound, SubmitOutcome } from "../ledger.js";
import { float8Array, int4Array, int8Array, textArray, unlessAll } from "./arrays.js";
import type { Means } from "./changes.js";
import { usedValue } from "./failures.js";
import { number, numberOrNull, storableAgeMs, storableMs, type Row } from "./rows.js";

/** Any depth is below it, and sums of it and a depth are exact. */
const BEYOND_ALL_DEPTHS = 2 ** 52;

export async function submit(
  { run, changes }: Means,
  jobs: readonly NewJob[],
  { maxDepth }: AdmissionBound,
): Promise<SubmitOutcome[]> {
  if (jobs.length === 0) return [];
  const twice = namedTwice(jobs);
  if (twice !== null) throw usedTwice(twice);
  const [channel, message] = changes.tellingOfSubmit();
  const values = [...submitValues(jobs, maxDepth), channel, message, delays(jobs)];
  const [row] = await run("submit", values).catch((error: unknown) => {
    const used = usedId(jobs, error);
    throw used === null ? error : usedTwice(used, error);
  });
  const outcomes = submitOutcomes(jobs, row, maxDepth);
  const accepted = outcomes.flatMap((one) => (one.kind === "accepted" ? [one.job.jobId] : []));
  if (accepted.length > 0) changes.submitted(accepted, message !== null);
  return outcomes;
}

/** The values of the statement but for the last three. */
function submitValues(jobs: readonly NewJob[], maxDepth: number): unknown[] {
  const records = jobs.map((job) => newlyQueued(job, 0));
  const texts = (of: (job: Job) => string | null, fallback: string | null): Buffer =>
    textArray(unlessAll(records.map(of), fallback));
  const integers = (of: (job: Job) => number, fallback: number): Buffer =>
    int4Array(unlessAll(records.map(of), fallback));
  return [
    textArray(records.map((job) => job.jobId)),
    textArray(records.map((job) => job.task)),
    textArray(jobs.map((job) => job.payloadJson)),
    texts((job) => job.planId, null),
    texts((job) => job.phase, null),
    texts((job) => job.queue, DEFAULT_QUEUE),
    integers((job) => job.priority, 0),
    float8Array(
      unlessAll(
        jobs.map(({ runAtMs }) => (isGiven(runAtMs) ? storableMs(runAtMs) : null)),
        null,
      ),
    ),
    integers((job) => job.maxAttempts, 1),
    int8Array(
      unlessAll(
        records.map((job) => job.timeoutMs),
        null,
      ),
    ),
    integers((job) => job.schemaVersion, 1),
    texts((job) => job.requestId, null),
    texts((job) => job.idempotencyKey, null),
    jobs.length,
    wholeBound(maxDepth),
  ];
}

/** @param row the statement's answer. */
function submitOutcomes(
  jobs: readonly NewJob[],
  row: Row | undefined,
  maxDepth: number,
): SubmitOutcome[] {
  const granted = numberOrNull(row?.[0] ?? null) ?? 0;
  const nowMs = number(row?.[2]);
  // Where nothing was admitted, others have filled it to the bound since the depth was read.
  const depth =
    numberOrNull(row?.[1] ?? null) ?? Math.max(number(row?.[3]), wholeBound(maxDepth), 0);
  return jobs.map((job, place) => {
    if (place >= granted) return { kind: "full", depth };
    const record = newlyQueued(job, nowMs);
    return { kind: "accepted", job: { ...record, runAtMs: storableMs(record.runAtMs) } };
  });
}

/** The first id that the call names twice, or null. */
function namedTwice(jobs: readonly NewJob[]): string | null {
  const seen = new Set<string>();
  for (const { jobId } of jobs) {
    if (seen.has(jobId)) return jobId;
    seen.add(jobId);
  }
  return null;
}

/** Of a submit that was refused for a used id: which one the server named; null for other faults. */
function usedId(jobs: readonly NewJob[], error: unknown): string | null {
  const detail = usedValue(error instanceof Error ? error.cause : null);
  if (detail === null) return null;
  return jobs.find(({ jobId }) => detail.includes(`(${jobId})`))?.jobId ?? "of one of its jobs";
}

function usedTwice(jobId: string, cause?: unknown): Error {
  return new Error(`job id ${jobId} is used twice: give every job an id of its own`, { cause });
}

function delays(jobs: readonly NewJob[]): Buffer {
  const delaysMs = jobs.map(({ delayMs }) =>
    isGiven(delayMs) ? storableAgeMs(Math.max(0, delayMs)) : null,
  );
  return float8Array(unlessAll(delaysMs, null));
}

function isGiven(ms: number | null | undefined): ms is number {
  return ms !== null && ms !== undefined;
}

/** A job is admitted while depth < bound: that is the next whole number. */
function wholeBound(maxDepth: number): number {
  if (Number.isNaN(maxDepth)) return 0;
  return Math.ceil(Math.min(Math.max(maxDepth, 0), BEYOND_ALL_DEPTHS));
}
