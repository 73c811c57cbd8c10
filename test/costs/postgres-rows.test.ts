/**
 * The rows of async_jobs that statements on PostgreSQL read, as the server tells of each while it runs:
 * they follow the work at hand, whatever the size of the table. That no plan is a scan of the table:
 * test/ledger/postgres-plans.test.ts.
 */
import type pg from "pg";
import { afterAll, expect, inject, test } from "vitest";
import { Changes, newOrigin, type Means } from "../../src/ledger/postgres/changes.js";
import { claim, heartbeat } from "../../src/ledger/postgres/claiming.js";
import { counts, get } from "../../src/ledger/postgres/looking.js";
import { SESSION_SETTINGS } from "../../src/ledger/postgres/connections.js";
import { statementsOf } from "../../src/ledger/postgres/session.js";
import { settle } from "../../src/ledger/postgres/settling.js";
import { submit } from "../../src/ledger/postgres/submitting.js";
import { evict, expire, rescue } from "../../src/ledger/postgres/sweeping.js";
import { systemClock } from "../../src/runtime/clock.js";
import { silentLogger } from "../../src/runtime/logger.js";
import {
  beat,
  beatOf,
  claimOf,
  HOUR_MS,
  newJobs,
  PATIENT,
  present,
  ROOMY,
  SUCCEED,
  WORKER,
} from "../ledger/acts.js";
import { openAdmin, PostgresStores } from "../ledger/postgres-factory.js";
import { cost } from "./cost.js";

const server = inject("postgresUrl");
const stores = new PostgresStores(server);
afterAll(() => stores.close());

/** $1 have ended, $2 wait, half of them of another task. */
const FILL = `INSERT INTO :schema.async_jobs (job_id, task, payload_json, queue, priority, run_at,
    max_attempts, schema_version, status, attempt, created_at, finished_at)
  SELECT 'Z' || lpad(i::text, 25, '0'), CASE WHEN i % 2 = 0 THEN 'echo' ELSE 'other' END, '{}',
    'default', 0, now(), 1, 1, CASE WHEN i <= $1::int4 THEN 'succeeded' ELSE 'queued' END, 0, now(),
    CASE WHEN i <= $1::int4 THEN now() END
  FROM generate_series(1, $1::int4 + $2::int4) i`;
const COUNT = "UPDATE :schema.async_counts SET terminal = $1::int8, queued = $2::int8";
/**
 * Explained statements are planned for their values; that the ledger's own plans, which are made for any,
 * read by the same indexes is what postgres-plans.test.ts holds.
 */
const SETTINGS = SESSION_SETTINGS.map(([name, value]) => `SET ${name} = '${value}'`).join("; ");

/** PostgreSQL 14 reads a row less of them than 18. */
const VARIES: ReadonlySet<string> = new Set(["counts", "expire"]);
const MOST_ROWS: Readonly<Record<string, number>> = {
  submit: 0,
  // The group, then four in the index and the same four in the table.
  claim: 9,
  heartbeat: 4,
  get: 4,
  // Two groups, and the first of each, which is its oldest.
  counts: 4,
  expire: 2,
  // All that run.
  rescue: 4,
  settle: 4,
  // The oldest of a whole chunk, of which four are too many: found and removed.
  evict: 508,
  // Two groups, four of each to choose from, then as above.
  "claim of two tasks": 18,
};

test.each([
  ["500 have ended, 200 wait, never analyzed", 500, 200, false],
  ["500 have ended, 200 wait, analyzed", 500, 200, true],
  ["5,000 have ended, 2,000 wait, never analyzed", 5_000, 2_000, false],
  ["5,000 have ended, 2,000 wait, analyzed", 5_000, 2_000, true],
])("rows read for four jobs, where %s", async (_, ended, queued, analyzed) => {
  const h = await stores.open();
  const admin = await openAdmin(server);
  try {
    await h.query("ALTER TABLE :schema.async_jobs SET (autovacuum_enabled = off)");
    await h.query(FILL, [ended, queued]);
    await h.query(COUNT, [ended, queued]);
    if (analyzed) await h.query("ANALYZE :schema.async_jobs");
    await admin.query(SETTINGS);
    const rows = await rowsOfVerbs(new Reader(admin, h.schema), ended);
    expect(Object.keys(rows)).toEqual(Object.keys(MOST_ROWS));
    for (const [verb, most] of Object.entries(MOST_ROWS))
      expect(
        rows[verb],
        cost(
          `rows read by ${verb}`,
          "src/ledger/postgres/statements.ts and sweeping-statements.ts",
        ),
      ).toSatisfy((seen: number) => seen === most || (VARIES.has(verb) && seen === most - 1));
  } finally {
    await admin.end();
    await h.close();
  }
});

async function rowsOfVerbs(reader: Reader, keep: number): Promise<Record<string, number>> {
  const { means } = reader;
  const rows: Record<string, number> = {};
  await submit(means, newJobs(4), ROOMY);
  rows["submit"] = reader.spent();
  const claimed = await claim(means, { workerId: WORKER, tasks: ["echo"], limit: 4 });
  rows["claim"] = reader.spent();
  const beats = claimed.map(({ job }) => beatOf(job));
  await heartbeat(means.run, beat(), beats);
  rows["heartbeat"] = reader.spent();
  const jobIds = claimed.map(({ job }) => job.jobId);
  await get(means.run, jobIds);
  rows["get"] = reader.spent();
  await counts(means.run);
  rows["counts"] = reader.spent();
  await expire(means, { waitLimitMs: HOUR_MS, chunk: 500 });
  rows["expire"] = reader.spent();
  await rescue(means, PATIENT);
  rows["rescue"] = reader.spent();
  const ends = claimed.map(({ job }) => ({ ...claimOf(job), end: SUCCEED }));
  await settle(means, ends);
  rows["settle"] = reader.spent();
  await evict(means, { ttlMs: HOUR_MS, keep, chunk: 500 });
  rows["evict"] = reader.spent();
  const tasks = ["echo", "other"];
  const others = await claim(means, { workerId: WORKER, tasks, limit: 4 });
  rows["claim of two tasks"] = reader.spent();
  expect([claimed.length, others.length]).toEqual([4, 4]);
  return rows;
}

interface PlanNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly "Rows Removed by Index Recheck"?: number;
  readonly Plans?: readonly PlanNode[];
}

/** Explains each statement as it runs and takes that back, then runs it for good. */
class Reader {
  readonly means: Means;
  readonly #admin: pg.Client;
  readonly #statements: ReturnType<typeof statementsOf>;
  #rows = 0;

  constructor(admin: pg.Client, schema: string) {
    this.#admin = admin;
    this.#statements = statementsOf(schema);
    const run: Means["run"] = (name, values) => this.#run(name, values);
    const changes = new Changes({
      origin: newOrigin(),
      channel: "costs",
      clock: systemClock,
      logger: silentLogger,
      run,
      connect: () => Promise.reject(new Error("nobody listens here")),
    });
    this.means = { run, changes };
  }

  /** Rows read since the last question. */
  spent(): number {
    const rows = Math.round(this.#rows);
    this.#rows = 0;
    return rows;
  }

  async #run(...[name, given]: Parameters<Means["run"]>): ReturnType<Means["run"]> {
    const { text } = present(this.#statements.get(name));
    const values = [...given];
    const explain = `EXPLAIN (ANALYZE, FORMAT JSON) ${text}`;
    await this.#admin.query("BEGIN");
    const { rows: plans } = await this.#admin.query<{
      "QUERY PLAN": readonly { readonly Plan: PlanNode }[];
    }>(explain, values);
    await this.#admin.query("ROLLBACK");
    this.#rows += rowsRead(present(plans[0]?.["QUERY PLAN"][0]).Plan);
    const types = { getTypeParser: () => (value: unknown) => value };
    const sent = { text, values, types, rowMode: "array" } as const;
    return (await this.#admin.query<(string | null)[]>(sent)).rows;
  }
}

/** Also those that a filter drops, which is what makes a plan read on and on. */
function rowsRead(node: PlanNode): number {
  const below = (node.Plans ?? []).reduce((sum, child) => sum + rowsRead(child), 0);
  if (node["Relation Name"] !== "async_jobs" || !node["Node Type"].includes("Scan")) return below;
  const filtered = node["Rows Removed by Filter"] ?? 0;
  const rechecked = node["Rows Removed by Index Recheck"] ?? 0;
  return below + (node["Actual Rows"] + filtered + rechecked) * node["Actual Loops"];
}
