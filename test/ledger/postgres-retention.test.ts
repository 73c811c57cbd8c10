/** How PostgreSQL forgets ended jobs: a bounded number of bytes at once, and out of the others' way. */
import { randomBytes } from "node:crypto";
import { afterAll, expect, inject, test } from "vitest";
import { Changes, newOrigin } from "../../src/ledger/postgres/changes.js";
import { statementsOf, type RunStatement } from "../../src/ledger/postgres/session.js";
import { evict } from "../../src/ledger/postgres/sweeping.js";
import { systemClock } from "../../src/runtime/clock.js";
import { silentLogger } from "../../src/runtime/logger.js";
import { HOUR_MS, jobIn, numbers, present } from "./acts.js";
import { openAdmin, PostgresStores, type PostgresHarness } from "./postgres-factory.js";

const url = inject("postgresUrl");
const stores = new PostgresStores(url);
afterAll(() => stores.close());

/** Jobs that ended one after the other, each with this many bytes that can't be packed any smaller. */
async function endedJobs(h: PostgresHarness, count: number, bytes: number): Promise<string[]> {
  const jobIds = [];
  for (let nth = 0; nth < count; nth += 1) {
    const payloadJson = JSON.stringify(randomBytes(bytes / 2).toString("hex"));
    jobIds.push((await jobIn(h.ledger, "succeeded", { payloadJson })).job.jobId);
    await h.age(1);
  }
  return jobIds;
}

/** The statement. */
function forget(
  h: PostgresHarness,
  values: unknown[],
): Promise<{ readonly job_id: string; readonly more: boolean }[]> {
  return h.query(present(statementsOf(h.schema).get("evict")).text, values);
}
/** Among its values. */
const MAX_BYTES_AT = 3;

async function withStore(body: (h: PostgresHarness) => Promise<void>): Promise<void> {
  const h = await stores.open();
  try {
    await body(h);
  } finally {
    await h.close();
  }
}

test.each([
  ["by age", { ttlMs: -1, keep: 100 }],
  ["by number", { ttlMs: HOUR_MS, keep: 1 }],
])("forgets a bounded number of bytes at once, and all of the chunk: %s", (_, limit) =>
  withStore(async (h) => {
    const jobIds = await endedJobs(h, 5, 20_000);
    const pieces: unknown[] = [];
    const run: RunStatement = async (_name, values) => {
      const rows = await forget(h, values.with(MAX_BYTES_AT, 50_000));
      pieces.push(rows.map(({ job_id }) => job_id));
      return rows.map(({ job_id, more }) => [job_id, more ? "t" : "f"]);
    };
    const changes = new Changes({
      origin: newOrigin(),
      channel: "c",
      clock: systemClock,
      logger: silentLogger,
      run,
      connect: () => Promise.reject(new Error("nobody listens here")),
    });
    const told: string[] = [];
    for (const jobId of jobIds) changes.watch(jobId, () => told.push(jobId));
    const means = { run, changes };
    expect(await evict(means, { ...limit, chunk: 4 })).toBe(4);
    expect(pieces).toEqual([jobIds.slice(0, 2), jobIds.slice(2, 4)]);
    expect(told).toEqual(jobIds.slice(0, 4));
    expect(await numbers(h.ledger)).toEqual([0, 0, 1]);
  }),
);

test("a job that is larger than the bound is forgotten alone", () =>
  withStore(async (h) => {
    const jobIds = await endedJobs(h, 2, 20_000);
    const rows = await forget(h, [500, -1, 0, 1, "c", "m"]);
    expect(rows).toMatchObject([{ job_id: jobIds[0], more: true }]);
  }));

test("locks the counts, which all wait for, when the jobs are gone and not before", () =>
  withStore(async (h) => {
    await endedJobs(h, 3, 100);
    const holder = await openAdmin(url);
    try {
      await holder.query(`BEGIN; SELECT FROM ${h.schema}.async_counts FOR UPDATE`);
      const evicting = h.ledger.evict({ ttlMs: HOUR_MS, keep: 0, chunk: 500 });
      const waiting = `SELECT FROM pg_stat_activity
        WHERE application_name = ':schema' AND wait_event_type = 'Lock'`;
      while ((await h.query(waiting)).length === 0)
        await new Promise((resolve) => systemClock.timer(5, () => resolve(undefined)));
      const untouched = "SELECT FROM :schema.async_jobs FOR UPDATE SKIP LOCKED";
      expect(await h.query(untouched)).toHaveLength(0);
      await holder.query("COMMIT");
      expect(await evicting).toBe(3);
    } finally {
      await holder.end();
    }
  }));
