import Database from "better-sqlite3";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { migrate, migrations } from "./migrate.js";

const opened: Database.Database[] = [];
const folders: string[] = [];

function open(path = ":memory:"): Database.Database {
  const db = new Database(path);
  opened.push(db);
  return db;
}

afterEach(() => {
  for (const db of opened.splice(0)) db.close();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

function schema(db: Database.Database): unknown[] {
  return db.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name").all();
}

const all = migrations();

test("the files are numbered from 1 without a gap", () => {
  expect(all.map(({ number }) => number)).toEqual(all.map((_, index) => index + 1));
  expect(all.length).toBeGreaterThan(0);
});

test("step by step gives the same schema as all at once", () => {
  const atOnce = open();
  migrate(atOnce, "x", all, 0);
  const byStep = open();
  for (const { number } of all) migrate(byStep, "x", all.slice(0, number), 0);
  expect(schema(byStep)).toEqual(schema(atOnce));
});

test("what was run is recorded once, with number, name and time", () => {
  const db = open();
  migrate(db, "x", all, Date.UTC(2026, 0, 1));
  migrate(db, "x", all, Date.UTC(2027, 0, 1));
  expect(db.prepare("SELECT * FROM jobtable_migrations").all()).toEqual(
    all.map(({ number, name }) => ({ number, name, applied_at: "2026-01-01T00:00:00.000Z" })),
  );
});

test("two connections that start from the same empty file run each migration once", () => {
  const folder = mkdtempSync(join(tmpdir(), "jobtable-migrate-"));
  folders.push(folder);
  const [first, second] = [open(join(folder, "a.db")), open(join(folder, "a.db"))];
  migrate(first, "a.db", all, 0);
  migrate(second, "a.db", all, 0);
  expect(schema(second)).toEqual(schema(first));
  expect(second.prepare("SELECT count(*) FROM jobtable_migrations").pluck().get()).toBe(all.length);
});

test("a migration that fails leaves nothing of it, and of those before it in the same run", () => {
  const db = open();
  const broken = { number: all.length + 1, name: "broken", sql: "CREATE TABLE half (a); NONSENSE" };
  expect(() => {
    migrate(db, "x", [...all, broken], 0);
  }).toThrow(/NONSENSE/);
  expect(schema(db)).toEqual([]);
});

test("a database of a newer version is refused, by name", () => {
  const db = open();
  migrate(db, "x", [...all, { number: 9_999, name: "from-the-future", sql: "" }], 0);
  expect(() => {
    migrate(db, "jobs.db", all, 0);
  }).toThrow(
    expect.objectContaining({
      code: "ledger_newer",
      message: expect.stringMatching(/jobs\.db.*9999.*from-the-future.*upgrade/) as string,
    }),
  );
});

test("the required columns, checks and indexes are there by their names", () => {
  const db = open();
  migrate(db, "x", all, 0);
  const columns = db
    .prepare<[], { name: string }>("SELECT name FROM pragma_table_info('async_jobs')")
    .all()
    .map(({ name }) => name);
  expect(columns).toEqual(
    expect.arrayContaining(
      "job_id plan_id phase status payload_json created_at started_at finished_at last_heartbeat worker_id schema_version error_message task queue priority run_at attempt max_attempts cancel_requested_at result_json request_id idempotency_key timeout_ms progress_json".split(
        " ",
      ),
    ),
  );
  // What is null in most rows may stand behind the large ones.
  expect(columns.slice(-4)).toEqual([
    "payload_json",
    "result_json",
    "attempt_errors",
    "payload_fingerprint",
  ]);
  const text = JSON.stringify(schema(db));
  for (const name of ["ck_async_jobs_phase", "ck_async_jobs_status"]) expect(text).toContain(name);
  for (const name of ["plan_id", "status", "worker_id", "created_at", "finished_at"])
    expect(text).toContain(`"ix_async_jobs_${name}"`);
  expect(text).toContain("ux_async_jobs_idempotency_key");
});

test("the checks refuse what no job can be", () => {
  const db = open();
  migrate(db, "x", all, 0);
  const insert = (fields: Record<string, unknown>): void => {
    const row: Record<string, unknown> = {
      job_id: "01J00000000000000000000000",
      task: "t",
      queue: "default",
      status: "queued",
      priority: 0,
      run_at: "2026-01-01T00:00:00.000Z",
      attempt: 0,
      max_attempts: 1,
      created_at: "2026-01-01T00:00:00.000Z",
      schema_version: 1,
      payload_json: "{}",
      ...fields,
    };
    const names = Object.keys(row);
    db.prepare(
      `INSERT INTO async_jobs (${names.join()}) VALUES (${names.map((name) => `@${name}`).join()})`,
    ).run(row);
  };
  const ended = "2026-01-01T00:00:01.000Z";
  const refused: Record<string, unknown>[] = [
    { status: "done", finished_at: ended },
    { phase: "undo" },
    { attempt: 2 },
    { status: "running", attempt: 1 },
    { status: "succeeded" },
    { finished_at: ended },
    { status: "succeeded", finished_at: ended, error_message: "no" },
    { status: "failed", finished_at: ended },
    { status: "cancelled", finished_at: ended, result_json: "1" },
  ];
  for (const fields of refused)
    expect(() => {
      insert(fields);
    }, JSON.stringify(fields)).toThrow(/CHECK constraint failed/);
  insert({});
  expect(db.prepare("SELECT count(*) FROM async_jobs").pluck().get()).toBe(1);
});
