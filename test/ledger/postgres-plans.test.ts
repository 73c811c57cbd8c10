/**
 * No statement reads the table of jobs from end to end, whatever the planner knows or is told: with the
 * ledger's settings, where a plan is made once and for any values, and as sent through a proxy, with
 * values in view; on an empty table and on one where most jobs have ended, freshly analyzed or never.
 */
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { SESSION_SETTINGS } from "../../src/ledger/postgres/connections.js";
import { statementsOf, type StatementName } from "../../src/ledger/postgres/session.js";
import { openAdmin, PostgresStores, type PostgresHarness } from "./postgres-factory.js";

const stores = new PostgresStores(inject("postgresUrl"));
let h: PostgresHarness;

beforeAll(async () => {
  h = await stores.open();
});
afterAll(async () => {
  await h.close();
  await stores.close();
});

/** 60,000 jobs, of which 2,000 are queued and 500 run. */
const FILL = `INSERT INTO :schema.async_jobs (job_id, task, payload_json, queue, priority, run_at,
    max_attempts, schema_version, status, attempt, created_at, started_at, last_heartbeat, worker_id, finished_at)
  SELECT lpad(i::text, 26, '0'), 'task' || i % 3, '{}', 'default', i % 2, now(), 2, 1,
    CASE WHEN i > 58000 THEN 'queued' WHEN i > 57500 THEN 'running' ELSE 'succeeded' END, 1, now(), now(),
    now(), 'worker-' || i % 10, CASE WHEN i <= 57500 THEN now() END
  FROM generate_series(1, 60000) i`;

const ids = (count: number): string[] =>
  Array.from({ length: count }, (_, at) => String(at * 7 + 1).padStart(26, "0"));
const each = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);
const none: string[] = [];

type Value = string | number | boolean | null | readonly (string | number)[];
const SUBMITTED: readonly Value[] = [
  ids(500),
  each(500, "a"),
  each(500, "{}"),
  none,
  none,
  none,
  none,
  none,
  none,
  none,
  none,
  none,
  none,
  100,
  "c",
  null,
  false,
];
/** Values for each statement, as large as they come. */
const VALUES: Record<StatementName, readonly Value[]> = {
  submit: [...SUBMITTED, 500],
  submitKeyed: [...SUBMITTED, ids(500), each(500, "f")],
  claim: ["worker-1", ["task0", "task1", "none"], 500, "c", "m"],
  settle: [
    ids(500),
    each(500, 1),
    each(500, "w"),
    each(500, "succeed"),
    each(500, "1"),
    none,
    none,
    500,
    "c",
    none,
    none,
  ],
  cancel: [ids(500), "c", "m"],
  heartbeat: ["w", "h", 1, "", "running", "[]", 4, 0, 0, 0, ids(500), each(500, 1), none],
  get: [ids(1_000)],
  look: [ids(1_000)],
  result: ["x"],
  payload: ["x"],
  notify: ["c", "m"],
  expire: [1_000, 1_000, "c", "m", "message"],
  reject: [1_000, 1_000, "c", "m", "message", 1_000, "w"],
  rescue: [1_000, 30_000, ["worker-1"], 60_000, "c", "m", "message"],
  evict: [1_000, 1_000, 100, 1_000, "c", "m"],
  counts: [],
  inspect: [100, 30_000, 60_000],
  list: ["~", 101],
  listFiltered: ["~", 101, ["failed"], null, 500],
  listPlan: ["~", 101, ["failed"], null, 10_000, "p"],
  listLive: ["~", 101, ["queued", "running"], null],
  workers: [],
  leave: ["w"],
  usePlan: ["x", "tidy", "/repo", null],
  findPlans: ["tidy", 10],
  listPlans: [10],
  beginRun: ["y", "x", "apply", "{}"],
  dropRun: ["y"],
  writeStep: ["y", 1, "{}", ""],
  finishRun: ["y", "{}", "\\x00"],
  planRun: ["y", true],
  planRuns: ["x"],
  planPatch: ["y"],
};

async function plans(settings: readonly string[]): Promise<Map<string, string>> {
  const admin = await openAdmin(inject("postgresUrl"));
  const found = new Map<string, string>();
  try {
    for (const setting of settings) await admin.query(`SET ${setting}`);
    for (const [name, { text }] of statementsOf(h.schema)) {
      const values = VALUES[name];
      await admin.query("BEGIN");
      await admin.query(`PREPARE it AS ${text}`);
      const literals = values.map(literal).join(", ");
      const explained = await admin.query<{ "QUERY PLAN": string }>(
        `EXPLAIN EXECUTE it${values.length === 0 ? "" : `(${literals})`}`,
      );
      found.set(name, explained.rows.map((row) => row["QUERY PLAN"]).join("\n"));
      await admin.query("ROLLBACK");
      await admin.query("DEALLOCATE it");
    }
    return found;
  } finally {
    await admin.end();
  }
}

function literal(value: Value): string {
  if (value === null) return "NULL";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (typeof value === "string") return `'${value}'`;
  return `'{${value.map((one) => JSON.stringify(one)).join(",")}}'`;
}

interface Mode {
  readonly name: string;
  readonly settings: readonly string[];
}
const LEDGER: Mode = {
  name: "the ledger's settings",
  settings: SESSION_SETTINGS.map(([name, value]) => `${name} = '${value}'`),
};
const PROXY: Mode = {
  name: "the server's settings",
  settings: ["plan_cache_mode = force_custom_plan"],
};

/** As small as the work under way. */
const SMALL_INDEXES: ReadonlySet<string> = new Set([
  "ix_async_jobs_status",
  "ix_async_jobs_worker_id",
]);

/** The scans that read the table, or a large index of it, from end to end. */
function wholeScans(plan: string): string[] {
  const nodes = plan.split(/\n(?=\s*(?:->|CTE |InitPlan |SubPlan ))/);
  return nodes.filter((node) => {
    const isScan = /Scan .*on async_jobs\b|Bitmap Index Scan on \w*async_jobs/.test(node);
    if (!isScan || node.includes("Bitmap Heap Scan")) return false;
    const index = /(?:using|Bitmap Index Scan on) (\w+)/.exec(node)?.[1] ?? "";
    return !SMALL_INDEXES.has(index) && !node.includes("Index Cond:");
  });
}

describe.each([
  // Through a proxy, statements are planned anew each time: for an empty table, nothing is wrong.
  ["empty, never analyzed", 0, false, [LEDGER]],
  ["empty, analyzed", 0, true, [LEDGER]],
  ["never analyzed", 60_000, false, [LEDGER, PROXY]],
  ["analyzed", 60_000, true, [LEDGER, PROXY]],
])("%s", (_, rows, analyzed, modes) => {
  beforeAll(async () => {
    await h.query("ALTER TABLE :schema.async_jobs SET (autovacuum_enabled = off)");
    await h.query("TRUNCATE :schema.async_jobs");
    if (rows > 0) await h.query(FILL);
    if (analyzed) await h.query("ANALYZE :schema.async_jobs");
  });

  test.each(modes)("$name", async ({ name: mode, settings }) => {
    for (const [name, plan] of await plans(settings)) {
      expect(wholeScans(plan), `${name} with ${mode}:\n${plan}`).toEqual([]);
      // By their ids alone: how many run or wait must not matter.
      if (name === "settle" || name === "heartbeat" || name === "cancel")
        expect(plan, name).not.toMatch(/ix_async_jobs/);
      // Each of a list is compared with one other, not with all.
      if (settings === LEDGER.settings && (name === "settle" || name === "heartbeat"))
        expect(plan, name).toMatch(/Hash Cond: .*job_id/);
      if (name === "submitKeyed") expect(plan).toMatch(/hashed SubPlan/);
      // An order that an index of all jobs has must not be taken for the sake of a few that run.
      if (name === "inspect") expect(plan).toMatch(/ix_async_jobs_worker_id/);
      if (name === "listPlan") {
        expect(plan).toMatch(/ix_async_jobs_plan_id/);
        expect(plan).not.toMatch(/pk_async_jobs/);
      }
      if (name === "listLive") expect(plan).toMatch(/ix_async_jobs_status/);
      // Millions may have ended in the same moment: retention takes them as the index has them.
      if (name === "evict") expect(plan).not.toMatch(/Sort/);
    }
  });
});
