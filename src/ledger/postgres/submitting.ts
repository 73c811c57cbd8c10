/** Submitting: what is sent, and what the answer means. */
import { LedgerError } from "../../job/errors.js";
import type { Job, NewJob } from "../../job/job.js";
import { DEFAULT_QUEUE, fingerprintOf, newlyQueued, requestIdOf } from "../../job/transition.js";
import { verdictsOn, type Asked, type Known } from "../admitting.js";
import type { AdmissionBound, SubmitOutcome } from "../ledger.js";
import { AFTER_JOB, textOrNull } from "../sql/rows.js";
import { float8Array, int4Array, int8Array, textArray, unlessAll } from "./arrays.js";
import type { Means } from "./changes.js";
import { usedValue } from "./failures.js";
import { number, numberOrNull, storableAgeMs, storableMs, toJob, type Row } from "./rows.js";
import type { RunStatement } from "./session.js";

/** Any depth is below it, and sums of it and a depth are exact. */
const BEYOND_ALL_DEPTHS = 2 ** 52;
/** A key that another submit records at the same moment is found by the next try. */
const TRIES = 5;

/** Where changes are told, and the message; null: it is not told with this submit. */
export type Telling = readonly [channel: string, message: string | null];

export async function submit(
  { run, changes }: Means,
  jobs: readonly NewJob[],
  bound: AdmissionBound,
): Promise<SubmitOutcome[]> {
  if (jobs.length === 0) return [];
  const telling = changes.tellingOfSubmit();
  const outcomes = await submitOver(run, jobs, bound, telling);
  const accepted = outcomes.flatMap((one) => (one.kind === "accepted" ? [one.job.jobId] : []));
  if (accepted.length > 0) changes.submitted(accepted, telling[1] !== null);
  return outcomes;
}

/**
 * Submits by whatever runs statements; listeners of this process are not told.
 * @param tries how often it may run one that was refused: once within a transaction, which ends with
 *   the first fault.
 */
export async function submitOver(
  run: RunStatement,
  jobs: readonly NewJob[],
  bound: AdmissionBound,
  telling: Telling,
  tries = TRIES,
): Promise<SubmitOutcome[]> {
  const twice = namedTwice(jobs);
  if (twice !== null) throw usedTwice(twice);
  return jobs.some(({ idempotency }) => idempotency !== undefined && idempotency !== null)
    ? submitKeyed(run, jobs, bound, telling, tries)
    : submitPlain(run, jobs, bound, telling);
}

async function submitPlain(
  run: RunStatement,
  jobs: readonly NewJob[],
  { maxDepth, whole = false }: AdmissionBound,
  telling: Telling,
): Promise<SubmitOutcome[]> {
  const values = [...valuesOf(jobs), wholeBound(maxDepth), ...telling, whole, jobs.length];
  const [row] = await run("submit", values).catch((error: unknown) => {
    const used = usedId(jobs, error);
    throw used === null ? error : usedTwice(used, error);
  });
  const { granted, depth, nowMs } = answerOf(row, whole, maxDepth);
  return jobs.map((job, place) =>
    place < granted ? { kind: "accepted", job: recordOf(job, nowMs) } : { kind: "full", depth },
  );
}

/** Of several with one key only the first is sent: the others follow from it. */
async function submitKeyed(
  run: RunStatement,
  jobs: readonly NewJob[],
  { maxDepth, whole = false }: AdmissionBound,
  telling: Telling,
  tries: number,
): Promise<SubmitOutcome[]> {
  const asked = jobs.map((job): Asked => {
    const { idempotencyKey: key } = newlyQueued(job, 0);
    return { key, fingerprint: fingerprintOf(job) };
  });
  const firstOf = new Map<string, number>();
  for (const [place, { key }] of asked.entries())
    if (key !== null && !firstOf.has(key)) firstOf.set(key, place);
  const isFirst = ({ key }: Asked, place: number): boolean =>
    key === null || firstOf.get(key) === place;
  const sent = jobs.filter((_, place) => isFirst(asked[place] ?? NOTHING_ASKED, place));
  const keys = asked.filter(isFirst);
  const torn =
    whole &&
    asked.some(({ key, fingerprint }) => {
      const first = key === null ? undefined : asked[firstOf.get(key) ?? 0];
      return first !== undefined && first.fingerprint !== fingerprint;
    });
  const [row] = await runUntilKeysStand(run, tries, jobs, [
    ...valuesOf(sent),
    torn ? 0 : wholeBound(maxDepth),
    ...telling,
    whole,
    textArray(keys.map(({ key }) => key)),
    textArray(keys.map(({ fingerprint }) => fingerprint)),
  ]);
  const { granted, depth, nowMs } = answerOf(row, whole, maxDepth);
  const known = knownOf(row);
  const records = jobs.map((job) => recordOf(job, nowMs));
  return verdictsOn(asked, granted, whole, (key) => known.get(key)).map((verdict, place) => {
    const job = records["mate" in verdict ? verdict.mate : place];
    if (verdict.kind === "full" || job === undefined) return { kind: "full", depth };
    if (verdict.kind === "admitted") return { kind: "accepted", job };
    return { kind: verdict.kind, job: "found" in verdict ? verdict.found : job };
  });
}

const NOTHING_ASKED: Asked = { key: null, fingerprint: null };

/** Nothing of a try that was refused by an index is left. */
async function runUntilKeysStand(
  run: RunStatement,
  most: number,
  jobs: readonly NewJob[],
  values: readonly unknown[],
): Promise<Row[]> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await run("submitKeyed", values);
    } catch (error) {
      const used = usedId(jobs, error);
      if (used === null) throw error;
      if (tries < most) continue;
      if (!isKeyFault(error)) throw usedTwice(used, error);
      throw new LedgerError(
        "ledger_unavailable",
        "an idempotency key is recorded and forgotten too fast to tell what it names: try again",
        { cause: error },
      );
    }
  }
}

/** The jobs that had one of the keys before, by it. */
function knownOf(row: Row | undefined): Map<string, Known<Job>> {
  const json = textOrNull(row?.[4] ?? null);
  const rows = json === null ? [] : (JSON.parse(json) as Row[]);
  return new Map(
    rows.map((cells) => {
      const found = toJob(cells);
      return [found.idempotencyKey ?? "", { found, fingerprint: cells[AFTER_JOB] ?? null }];
    }),
  );
}

/** What both statements take first. */
function valuesOf(jobs: readonly NewJob[]): unknown[] {
  const texts = (of: (job: NewJob) => string | null, fallback: string | null): Buffer =>
    textArray(unlessAll(jobs, of, fallback));
  const integers = (of: (job: NewJob) => number, fallback: number): Buffer =>
    int4Array(unlessAll(jobs, of, fallback));
  return [
    textArray(jobs.map((job) => job.jobId)),
    textArray(jobs.map((job) => job.task)),
    textArray(jobs.map((job) => job.payloadJson)),
    texts((job) => job.planId ?? null, null),
    texts((job) => job.phase ?? null, null),
    texts((job) => job.queue ?? DEFAULT_QUEUE, DEFAULT_QUEUE),
    integers((job) => job.priority ?? 0, 0),
    float8Array(unlessAll(jobs, givenRunAtMs, null)),
    integers((job) => job.maxAttempts ?? 1, 1),
    int8Array(unlessAll(jobs, (job) => job.timeoutMs ?? null, null)),
    integers((job) => job.schemaVersion, 1),
    texts(requestIdOf, null),
    float8Array(unlessAll(jobs, givenDelayMs, null)),
  ];
}

/** @param row the statement's answer. */
function answerOf(
  row: Row | undefined,
  whole: boolean,
  maxDepth: number,
): { readonly granted: number; readonly depth: number; readonly nowMs: number } {
  const before = number(row?.[3]);
  // Where nothing was admitted, others have filled it to the bound since the depth was read.
  const depthNow = whole ? before : Math.max(before, wholeBound(maxDepth), 0);
  return {
    granted: numberOrNull(row?.[0] ?? null) ?? 0,
    depth: numberOrNull(row?.[1] ?? null) ?? depthNow,
    nowMs: number(row?.[2]),
  };
}

function recordOf(job: NewJob, nowMs: number): Job {
  const record = newlyQueued(job, nowMs);
  const runAtMs = storableMs(record.runAtMs);
  return runAtMs === record.runAtMs ? record : { ...record, runAtMs };
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

/** Of a submit that an index refused: the id that the server named; null for other faults. */
function usedId(jobs: readonly NewJob[], error: unknown): string | null {
  const used = usedValue(error instanceof Error ? error.cause : null);
  if (used === null) return null;
  return (
    jobs.find(({ jobId }) => used.detail.includes(`(${jobId})`))?.jobId ?? "of one of its jobs"
  );
}

function isKeyFault(error: unknown): boolean {
  return usedValue(error instanceof Error ? error.cause : null)?.index.startsWith("ux_") === true;
}

function usedTwice(jobId: string, cause?: unknown): Error {
  return new Error(`job id ${jobId} is used twice: give every job an id of its own`, { cause });
}

function givenRunAtMs({ runAtMs }: NewJob): number | null {
  return runAtMs === undefined || runAtMs === null ? null : storableMs(runAtMs);
}

function givenDelayMs({ delayMs }: NewJob): number | null {
  return delayMs === undefined || delayMs === null ? null : storableAgeMs(Math.max(0, delayMs));
}

/** A job is admitted while depth < bound: that is the next whole number. */
function wholeBound(maxDepth: number): number {
  if (Number.isNaN(maxDepth)) return 0;
  return Math.ceil(Math.min(Math.max(maxDepth, 0), BEYOND_ALL_DEPTHS));
}
