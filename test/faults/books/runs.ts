/** The journal against the ledger: which runs there were, and how many at once. */
import type { Books } from "./books.js";
import type { JournalEntry } from "./journal.js";

export interface RunCounts {
  readonly started: number;
  /** Runs that never ended: their process was killed. */
  readonly cut: number;
  /** Ends of runs that had lost their job: nothing of them may stand in the ledger. */
  readonly stale: number;
}

export function countRuns({ journal, jobs }: Books): RunCounts {
  const starts = journal.filter(({ mark }) => mark === "S").length;
  const ends = journal.filter(({ mark }) => mark !== "S");
  const stale = ends.filter(({ jobId, attempt, mark }) => {
    const job = jobs.get(jobId);
    if (job === undefined) return false;
    return job.attempt !== attempt || (mark === "E" && job.status === "failed");
  });
  // A run that failed as told is followed by another attempt without having lost its job.
  const lost = stale.filter(({ mark }) => mark === "E");
  return { started: starts, cut: starts - ends.length, stale: lost.length };
}

/** How far each seat's clock was from the ledger's, by what its runs wrote down: the median, ms. */
export function clockOffsetsMs({ journal, jobs }: Books): ReadonlyMap<string, number> {
  const offsets = new Map<string, number[]>();
  for (const { mark, jobId, attempt, life, wallMs } of journal) {
    const job = jobs.get(jobId);
    // The record has the time of the last start alone.
    if (mark !== "S" || job?.attempt !== attempt || job.startedAtMs === null) continue;
    const [seat = ""] = life.split(".");
    offsets.set(seat, [...(offsets.get(seat) ?? []), wallMs - job.startedAtMs]);
  }
  return new Map(
    [...offsets].map(([seat, all]) => [seat, all.sort((a, b) => a - b)[all.length >> 1] ?? 0]),
  );
}

/** One run per attempt, of jobs that exist, never more than their attempts, none after the end. */
export function* oddRuns({ journal, jobs }: Books): Generator<string> {
  const begun = new Set<string>();
  for (const { mark, jobId, attempt, life } of journal) {
    const job = jobs.get(jobId);
    if (job === undefined) {
      yield `${life} ran ${jobId}, which is not on record`;
      continue;
    }
    if (mark !== "S") continue;
    const run = `${jobId} attempt ${String(attempt)}`;
    if (begun.has(run)) yield `${run} was started twice, the second time by ${life}`;
    begun.add(run);
    if (attempt > job.maxAttempts)
      yield `${run} was started, with ${String(job.maxAttempts)} allowed`;
    if (attempt > job.attempt)
      yield `${run} was started by ${life}, but the job ended with attempt ${String(job.attempt)}`;
  }
}

/** Never more runs in one process than it has slots. */
export function* crowdedWorkers({ journal, slots }: Books): Generator<string> {
  const running = new Map<string, number>();
  const told = new Set<string>();
  for (const { mark, life } of journal) {
    const now = (running.get(life) ?? 0) + (mark === "S" ? 1 : -1);
    running.set(life, now);
    if (now <= slots || told.has(life)) continue;
    told.add(life);
    yield `${life} ran ${String(now)} jobs at once in ${String(slots)} slots`;
  }
}

/** A job that succeeded did so in the run that its record names, which ended well, once. */
export function* endsWithoutRuns({ journal, jobs }: Books): Generator<string> {
  const ends = new Map<string, JournalEntry[]>();
  for (const entry of journal)
    if (entry.mark === "E") ends.set(entry.jobId, [...(ends.get(entry.jobId) ?? []), entry]);
  for (const { jobId, status, attempt } of jobs.values()) {
    if (status !== "succeeded") continue;
    const runs = (ends.get(jobId) ?? []).filter((end) => end.attempt === attempt).length;
    if (runs !== 1)
      yield `${jobId} succeeded with attempt ${String(attempt)}, which ended ${String(runs)} times`;
  }
}
