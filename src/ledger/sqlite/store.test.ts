import type { Database } from "better-sqlite3";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { newlyQueued } from "../../job/transition.js";
import { commitsInLog } from "../../../test/ledger/sqlite-log.js";
import { systemClock } from "../../runtime/clock.js";
import { openDatabase } from "./connection.js";
import type { Operation, Outcome } from "./protocol.js";
import { toSubmittedRow } from "./rows.js";
import { Store } from "./store.js";

const NOW_MS = Date.UTC(2026, 0, 1);
const WORKER = "worker-0000000a";

let folder: string;
let path: string;
const stores: Store[] = [];
/** The connections in the order in which the stores opened them. */
let connections: Database[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "jobtable-store-"));
  path = join(folder, "jobs.db");
  connections = [];
});

afterEach(() => {
  for (const store of stores.splice(0)) store.close();
  rmSync(folder, { recursive: true });
});

function open(): Store {
  const store = new Store({
    path,
    nowMs: NOW_MS,
    clock: systemClock,
    open: (file) => {
      const db = openDatabase(file);
      connections.push(db);
      return db;
    },
  });
  stores.push(store);
  return store;
}

function connection(): Database {
  const last = connections.at(-1);
  if (last === undefined) throw new Error("no connection was opened");
  return last;
}

let lastId = 0;
function submit(jobId: string, payloadJson = "{}"): Operation {
  const job = newlyQueued({ jobId, task: "noop", schemaVersion: 1, payloadJson }, NOW_MS);
  return { verb: "submit", maxDepth: 1_000_000, jobs: [toSubmittedRow(job, payloadJson)] };
}

function newId(): string {
  lastId += 1;
  return `01J${String(lastId).padStart(23, "0")}`;
}

function run(store: Store, ...operations: Operation[]): Outcome[] {
  return store.run([{ nowMs: NOW_MS, operations }])[0] ?? [];
}

function counts(store: Store): unknown {
  const [outcome] = run(store, { verb: "counts" });
  return outcome?.failed === false ? outcome.answer : outcome;
}

describe("a group", () => {
  test("is one transaction for all batches, answered batch by batch", () => {
    const store = open();
    const before = commitsInLog(path);
    const outcomes = store.run([
      { nowMs: NOW_MS, operations: [submit(newId()), submit(newId())] },
      { nowMs: NOW_MS, operations: [{ verb: "counts" }] },
    ]);
    expect(outcomes.map((batch) => batch.length)).toEqual([2, 1]);
    expect(outcomes[1]).toEqual([
      {
        failed: false,
        answer: expect.objectContaining({ queued: 2 }) as unknown,
      },
    ]);
    expect(commitsInLog(path)).toBe(before + 1);
  });

  test("in which one call is at fault fails that call alone", () => {
    const store = open();
    const used = newId();
    run(store, submit(used));
    const outcomes = run(store, submit(newId()), submit(used), submit(newId()));
    expect(outcomes.map(({ failed }) => failed)).toEqual([false, true, false]);
    expect(outcomes[1]).toMatchObject({
      code: null,
      detail: expect.stringContaining(used) as string,
    });
    expect(counts(store)).toMatchObject({ queued: 3, running: 0, terminal: 0 });
  });

  test("of claims that find nothing takes no lock", () => {
    const store = open();
    open();
    connection().exec("BEGIN IMMEDIATE");
    expect(run(store, { verb: "claim", workerId: WORKER, tasks: ["noop"], limit: 4 })).toEqual([
      { failed: false, answer: [] },
    ]);
    connection().exec("ROLLBACK");
  });

  test("of looks goes on while another connection writes", () => {
    const store = open();
    const jobId = newId();
    run(store, submit(jobId));
    open();
    connection().exec("BEGIN IMMEDIATE");
    expect(run(store, { verb: "get", jobIds: [jobId] })[0]?.failed).toBe(false);
    connection().exec("ROLLBACK");
  });
});

describe("a full disk", () => {
  const big = "x".repeat(100_000);

  test("fails every call of the group with ledger_full, records nothing, and passes", () => {
    const store = open();
    run(store, submit(newId()));
    const pages = connection().pragma("page_count", { simple: true });
    connection().pragma(`max_page_count = ${String(Number(pages) + 10)}`);
    const outcomes = run(store, submit(newId()), submit(newId(), big));
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({
        failed: true,
        code: "ledger_full",
        detail: expect.stringMatching(/jobs\.db.*full.*make room/) as string,
      });
    expect(outcomes).toHaveLength(2);
    expect(connection().inTransaction).toBe(false);
    expect(counts(store)).toMatchObject({ queued: 1 });
    connection().pragma("max_page_count = 1000000");
    expect(run(store, submit(newId(), big))[0]?.failed).toBe(false);
    expect(counts(store)).toMatchObject({ queued: 2 });
  });

  test("does not keep small work that fits from being done", () => {
    const store = open();
    const jobId = newId();
    run(store, submit(jobId));
    const pages = connection().pragma("page_count", { simple: true });
    connection().pragma(`max_page_count = ${String(Number(pages) + 1)}`);
    expect(run(store, submit(newId(), big))[0]).toMatchObject({ code: "ledger_full" });
    expect(run(store, { verb: "cancel", jobIds: [jobId] })[0]).toMatchObject({ failed: false });
  });
});

describe("a lock that another process keeps", () => {
  test("is waited for, then named", () => {
    const store = open();
    connection().pragma("busy_timeout = 1");
    open();
    connection().exec("BEGIN IMMEDIATE");
    expect(run(store, submit(newId()))[0]).toMatchObject({
      code: "ledger_unavailable",
      detail: expect.stringMatching(/another process kept it locked/) as string,
    });
    connection().exec("ROLLBACK");
    expect(run(store, submit(newId()))[0]?.failed).toBe(false);
  });
});

describe("a damaged file", () => {
  test("is named as such, and read anew once it has been restored", () => {
    const store = open();
    const jobId = newId();
    run(store, submit(jobId));
    connection().pragma("wal_checkpoint(TRUNCATE)");
    const good = readFileSync(path);
    connection().pragma("cache_size = 1");
    connection().pragma("shrink_memory");
    writeFileSync(path, Buffer.alloc(good.length, 0xff));
    for (let attempt = 0; attempt < 2; attempt += 1)
      expect(run(store, { verb: "get", jobIds: [jobId] })[0]).toMatchObject({
        failed: true,
        code: "ledger_unreadable",
        detail: expect.stringContaining(path) as string,
      });
    writeFileSync(path, good);
    expect(counts(store)).toMatchObject({ queued: 1 });
    expect(run(store, submit(newId()))[0]?.failed).toBe(false);
    expect(connections.length).toBeGreaterThan(1);
  });
});

describe("counts that someone has falsified", () => {
  test("are right after the next open", () => {
    run(open(), submit(newId()), submit(newId()));
    connection().exec("UPDATE async_counts SET queued = 77, running = 5");
    expect(counts(open())).toMatchObject({ queued: 2, running: 0 });
  });

  test("never fall below zero: what is live is counted anew", () => {
    const store = open();
    const jobId = newId();
    run(store, submit(jobId), submit(newId()));
    connection().exec("UPDATE async_counts SET queued = 0");
    expect(run(store, { verb: "cancel", jobIds: [jobId] })[0]?.failed).toBe(false);
    expect(counts(store)).toMatchObject({ queued: 1, running: 0, terminal: 1 });
  });
});
