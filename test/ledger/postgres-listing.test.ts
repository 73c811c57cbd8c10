/** What waits or runs is found at once in a PostgreSQL table, however much has ended since. */
import { afterAll, expect, inject, test } from "vitest";
import type { Status } from "../../src/job/state.js";
import { list } from "../../src/ledger/postgres/looking.js";
import { statementsOf, type RunStatement } from "../../src/ledger/postgres/session.js";
import { acceptOne, jobIn, present } from "./acts.js";
import { openAdmin, PostgresStores } from "./postgres-factory.js";

const url = inject("postgresUrl");
const stores = new PostgresStores(url);
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

test("the whole queue is not read for a page that its newest fill", async () => {
  const h = await stores.open();
  const admin = await openAdmin(url);
  try {
    const jobIds = [];
    for (let nth = 0; nth < 3; nth += 1) jobIds.push((await acceptOne(h.ledger)).jobId);
    const used: string[] = [];
    const run: RunStatement = async (name, values) => {
      used.push(name);
      const { text } = present(statementsOf(h.schema).get(name));
      const types = { getTypeParser: () => String };
      const { rows } = await admin.query<(string | null)[]>({
        ...{ text, values: [...values], types },
        rowMode: "array",
      });
      return rows;
    };
    const page = await list(run, { statuses: ["queued"], limit: 2 });
    expect(page.jobs.map(({ jobId }) => jobId)).toEqual(jobIds.slice(1).reverse());
    expect(page.nextCursor).toBe(jobIds[1]);
    expect(used).toEqual(["listFiltered"]);
  } finally {
    await admin.end();
    await h.close();
  }
});
