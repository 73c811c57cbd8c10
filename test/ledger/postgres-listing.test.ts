/** What waits or runs is found at once in a PostgreSQL table, however much has ended since. */
import { afterAll, expect, inject, test } from "vitest";
import type { Status } from "../../src/job/state.js";
import { jobIn } from "./acts.js";
import { PostgresStores } from "./postgres-factory.js";

const stores = new PostgresStores(inject("postgresUrl"));
afterAll(() => stores.close());

/** More than a list looks at for one page. */
const ENDED = `INSERT INTO :schema.async_jobs (job_id, task, payload_json, queue, priority, run_at,
    max_attempts, schema_version, status, attempt, created_at, finished_at)
  SELECT 'Z' || lpad(i::text, 25, '0'), 'echo', '{}', 'default', 0, now(), 1, 1, 'succeeded', 1, now(), now()
  FROM generate_series(1, 10001) i`;

test("below ten thousand newer ones that have ended", async () => {
  const h = await stores.open();
  try {
    const running = (await jobIn(h.ledger, "running")).job.jobId;
    const queued = (await jobIn(h.ledger, "queued", { task: "other", delayMs: 60_000 })).job.jobId;
    await h.query(ENDED);
    const listed = async (statuses: Status[], given = {}): Promise<unknown> => {
      const { jobs, nextCursor } = await h.ledger.list({ statuses, limit: 10, ...given });
      expect(nextCursor).toBeUndefined();
      return jobs.map(({ jobId }) => jobId);
    };
    expect(await listed(["queued"])).toEqual([queued]);
    expect(await listed(["running"])).toEqual([running]);
    expect(await listed(["queued", "running"])).toEqual([queued, running]);
    expect(await listed(["queued", "running"], { task: "echo" })).toEqual([running]);
    expect(await listed(["queued", "running"], { cursor: queued })).toEqual([running]);
  } finally {
    await h.close();
  }
});
