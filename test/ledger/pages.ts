/** A list, page by page to its end. */
import { expect } from "vitest";
import type { Ledger, ListQuery } from "../../src/ledger/ledger.js";

/** All pages, each at most `limit` long. */
export async function pages(
  ledger: Ledger,
  query: ListQuery,
  between: () => Promise<unknown> = () => Promise.resolve(),
): Promise<string[]> {
  const jobIds: string[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < 1_000; page += 1) {
    const asked = cursor === undefined ? query : { ...query, cursor };
    const { jobs, nextCursor } = await ledger.list(asked);
    expect(jobs.length).toBeLessThanOrEqual(query.limit);
    jobIds.push(...jobs.map((job) => job.jobId));
    if (nextCursor === undefined) return jobIds;
    cursor = nextCursor;
    await between();
  }
  throw new Error("the list did not end within 1,000 pages");
}
