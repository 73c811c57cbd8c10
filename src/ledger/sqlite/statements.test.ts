import Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { migrate, migrations } from "./migrate.js";
import { PLAN_SQL } from "./plan-statements.js";
import { prepareStatements, SQL, type StatementName } from "./statements.js";

/** Statements that go through all that is queued, or all that runs: bounded by the work at hand, never by history. */
const LIVE_SCANS: readonly StatementName[] = [
  "countQueued",
  "countRunning",
  "listQueued",
  "runningLooks",
];

let db: Database.Database;

beforeAll(() => {
  db = new Database(":memory:");
  migrate(db, ":memory:", migrations(), 0);
});

afterAll(() => {
  db.close();
});

function plan(sql: string): string[] {
  const parameters = Array<null>(sql.split("?").length - 1).fill(null);
  return db
    .prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`)
    .all(...parameters)
    .map(({ detail }) => detail);
}

describe("the plan of every statement", () => {
  const planned = Object.entries(SQL).filter(([, sql]) =>
    /FROM async_jobs|UPDATE async_jobs/.test(sql),
  );

  test.each(planned)("%s reads no more of the jobs than its index names", (name, sql) => {
    const steps = plan(sql).filter((detail) => detail.includes("async_jobs"));
    expect(steps.length).toBeGreaterThan(0);
    for (const step of steps) {
      if (LIVE_SCANS.some((scan) => scan === name) && step.startsWith("SCAN"))
        expect(step).toMatch(/ USING (COVERING )?INDEX ix_async_jobs_(status|worker_id)/);
      else if (name === "evict" || name === "stuck" || name === "listRunning" || name === "list")
        expect(step).toMatch(/USING (COVERING )?INDEX|USING INTEGER PRIMARY KEY/);
      else
        expect(step).toMatch(/^SEARCH async_jobs USING (COVERING INDEX|INDEX|INTEGER PRIMARY KEY)/);
    }
  });

  test("none sorts, but the bounded lists of what is live", () => {
    const sorting = planned
      .filter(([, sql]) => plan(sql).some((detail) => detail.includes("USE TEMP B-TREE")))
      .map(([name]) => name);
    expect(sorting.sort()).toEqual(["listQueued", "listQueuedTask", "listRunning"]);
  });

  test("a job is found by its id, also where owner and status are asked for", () => {
    for (const name of [
      "succeed",
      "fail",
      "timeOut",
      "stop",
      "retry",
      "release",
      "stopReleased",
      "stopRequested",
      "beatJob",
      "cancel",
      "requestCancel",
      "job",
      "look",
    ] as const)
      expect(plan(SQL[name])).toEqual([
        "SEARCH async_jobs USING INDEX sqlite_autoindex_async_jobs_1 (job_id=?)",
      ]);
  });

  test("a look searches by id, job for job, in the order of the ids", () => {
    expect(plan(SQL.looks).filter((step) => !step.startsWith("CORRELATED"))).toEqual([
      "SCAN json_each VIRTUAL TABLE INDEX 1:",
      "SEARCH async_jobs USING INDEX sqlite_autoindex_async_jobs_1 (job_id=?) LEFT-JOIN",
    ]);
  });

  test("retention walks the ended in their order", () => {
    expect(plan(SQL.evict).join("\n")).toContain(
      "SEARCH async_jobs USING COVERING INDEX ix_async_jobs_finished_at (finished_at>? AND finished_at<?)",
    );
  });
});

describe("what is kept of plans", () => {
  test.each(Object.entries(PLAN_SQL))("%s goes through no table of it", (_, sql) => {
    const steps = plan(sql).filter((detail) => /\bplan(s|_runs|_steps)\b/.test(detail));
    for (const step of steps)
      expect(step).toMatch(
        /^SEARCH plan|^SCAN plans USING (COVERING )?INDEX ix_plans_used_at|^MULTI-INDEX/,
      );
  });

  test("only what may be found under several names is sorted", () => {
    const sorting = Object.entries(PLAN_SQL)
      .filter(([, sql]) => plan(sql).some((detail) => detail.includes("USE TEMP B-TREE")))
      .map(([name]) => name);
    expect(sorting).toEqual(["findPlans"]);
  });
});

test("every statement has a name and prepares", () => {
  expect(Object.keys(prepareStatements(db)).sort()).toEqual(Object.keys(SQL).sort());
});
