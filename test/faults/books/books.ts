/** Everything that is known after a run, from all who took part in it. */
import type { Job } from "../../../src/job/job.js";
import type { Counts, Ledger } from "../../../src/ledger/ledger.js";
import { MAX_PAGE } from "../../../src/job/limits.js";
import type { Limits } from "../limits.js";
import type { Accepted } from "../load/submitters.js";
import type { EmptyPoll, Sighting } from "../load/waiters.js";
import type { JournalEntry } from "./journal.js";

export interface Books {
  /** What the submitters were promised, by id. */
  readonly accepted: ReadonlyMap<string, Accepted>;
  readonly sightings: readonly Sighting[];
  readonly emptyPolls: readonly EmptyPoll[];
  readonly journal: readonly JournalEntry[];
  /** What the ledger says at the end. */
  readonly jobs: ReadonlyMap<string, Job>;
  readonly results: ReadonlyMap<string, unknown>;
  readonly counts: Counts;
  /** The ids that workers had in the ledger, by life. */
  readonly idOfLife: ReadonlyMap<string, string>;
  readonly slots: number;
  readonly limits: Limits;
}

const READERS = 32;

/** Every job on record, with the results of those that have one. */
export async function readLedger(
  ledger: Ledger,
): Promise<Pick<Books, "jobs" | "results" | "counts">> {
  const jobs = new Map<string, Job>();
  let cursor: string | undefined;
  do {
    const page = await ledger.list({
      limit: MAX_PAGE,
      ...(cursor === undefined ? {} : { cursor }),
    });
    for (const job of page.jobs) jobs.set(job.jobId, job);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  const results = new Map<string, unknown>();
  const ids = jobs.values();
  const reader = async (): Promise<void> => {
    for (const { jobId, status } of ids) {
      if (status !== "succeeded") continue;
      const found = await ledger.result(jobId);
      results.set(jobId, JSON.parse(found?.resultJson ?? "null"));
    }
  };
  await Promise.all(Array.from({ length: READERS }, reader));
  return { jobs, results, counts: await ledger.counts() };
}
