import Database from "better-sqlite3";
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { newlyQueued } from "../../job/transition.js";
import { FAST_FOLDER } from "../../../test/ledger/sqlite-factory.js";
import { commitsInLog } from "../../../test/ledger/sqlite-log.js";
import { systemClock } from "../../runtime/clock.js";
import type { Operation, Outcome } from "./protocol.js";
import { toSubmittedRow } from "./rows.js";
import { Store } from "./store.js";

const NOW_MS = Date.UTC(2026, 0, 1);
const WORKER = "worker-0000000a";

let folder: string;
let path: string;
const stores: Store[] = [];
/** The connections in the order in which the stores opened them. */
let connections: Database.Database[];
/** What they were told, and what is done before each of it happens. */
let statements: string[];
let before: (statement: string) => void;

beforeEach(() => {
  folder = mkdtempSync(join(FAST_FOLDER, "jobtable-store-"));
  path = join(folder, "jobs.db");
  connections = [];
  statements = [];
  before = () => undefined;
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
      const verbose = (statement: unknown): void => {
        before(String(statement));
        statements.push(String(statement));
      };
      const db = new Database(file, { verbose });
      connections.push(db);
      return db;
    },
  });
  stores.push(store);
  return store;
}

function connection(): Database.Database {
  const last = connections.at(-1);
  if (last === undefined) throw new Error("no connection was opened");
  return last;
}

let lastId = 0;
function submit(jobId: string, payloadJson = "{}"): Operation {
  const job = newlyQueued({ jobId, task: "noop", schemaVersion: 1, payloadJson }, NOW_MS);
  return { verb: "submit", maxDepth: 1_000_000, jobs: [toSubmittedRow(job, null, payloadJson)] };
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

describe("what waits for the disk", () => {
  const claim: Operation = { verb: "claim", workerId: WORKER, tasks: ["noop"], limit: 1 };
  const sweep = { chunk: 10, workerTimeoutMs: 1_000 };
  const recorded: Operation[] = [
    submit(newId()),
    {
      verb: "settle",
      ends: [
        [newId(), WORKER, 1, "succeed", "1", 0],
        [newId(), WORKER, 1, "retry", "Error: again", 10],
      ],
    },
    { verb: "cancel", jobIds: [newId()] },
    { verb: "expire", waitLimitMs: 0, chunk: 10 },
    { verb: "reject", workerId: WORKER, graceMs: 0, ...sweep },
    { verb: "rescue", jobTimeoutMs: 0, goneWorkerIds: [], ...sweep },
  ];

  /** How safely each commit since the last question was made: as told, and as SQLite says it stands now. */
  function commits(): string[] {
    const levels: string[] = [];
    for (const statement of statements) {
      const [, level] = /^PRAGMA synchronous = (\w+)$/.exec(statement) ?? [];
      if (level !== undefined) told = level;
      if (statement === "COMMIT") levels.push(told);
    }
    statements = [];
    const now = { FULL: 2, NORMAL: 1 }[told];
    expect(connection().pragma("synchronous", { simple: true })).toBe(now);
    return levels;
  }
  let told = "";

  /** Claims a job, which need not wait. */
  function claimAlone(store: Store): void {
    run(store, submit(newId()));
    commits();
    // A job and its payload.
    expect(run(store, claim)).toMatchObject([{ failed: false, answer: { length: 2 } }]);
    expect(commits()).toEqual(["NORMAL"]);
  }

  test.each(recorded.map((operation) => [operation.verb, operation] as const))(
    "%s is on disk before it is answered, alone and beside a claim",
    (_, operation) => {
      const store = open();
      claimAlone(store);
      expect(run(store, operation)[0]?.failed).toBe(false);
      expect(commits()).toEqual(["FULL"]);
      claimAlone(store);
      const again = operation.verb === "submit" ? submit(newId()) : operation;
      expect(run(store, claim, again, claim).map(({ failed }) => failed)).not.toContain(true);
      expect(commits()).toEqual(["FULL"]);
    },
  );

  test("so is what is told of plans, their steps apart", () => {
    const store = open();
    const [planId, jobId, other] = [newId(), newId(), newId()];
    const plan = { planId, name: "tidy", workspace: "/repo", file: null };
    const began = { jobId, planId, phase: "apply", definitionJson: "{}" } as const;
    const step = { jobId, step: 0, recordJson: "{}", log: "" };
    const operations: readonly (readonly [Operation, string])[] = [
      [{ verb: "usePlan", plan }, "FULL"],
      [{ verb: "beginRun", run: began }, "FULL"],
      [{ verb: "writeStep", step }, "NORMAL"],
      [{ verb: "finishRun", outcome: { jobId, outcomeJson: "{}" } }, "FULL"],
      [{ verb: "beginRun", run: { ...began, jobId: other } }, "FULL"],
      [{ verb: "dropRun", jobId: other }, "NORMAL"],
    ];
    for (const [operation, level] of operations) {
      claimAlone(store);
      expect(run(store, operation)[0]?.failed).toBe(false);
      expect(commits()).toEqual([level]);
    }
  });

  test("so is what runs again call by call, since one was at fault", () => {
    const store = open();
    claimAlone(store);
    const used = newId();
    run(store, submit(used), submit(newId()));
    commits();
    const cancel: Operation = { verb: "cancel", jobIds: [used] };
    run(store, claim, submit(newId()), submit(used), claim, cancel);
    expect(commits()).toEqual(["NORMAL", "FULL", "NORMAL", "FULL"]);
  });

  test("so is what a connection records that took another's place", () => {
    const store = open();
    claimAlone(store);
    fault(connection());
    expect(run(store, submit(newId()))[0]?.failed).toBe(true);
    before = () => undefined;
    expect(run(store, submit(newId()))[0]?.failed).toBe(false);
    expect(connections).toHaveLength(2);
    expect(commits().at(-1)).toBe("FULL");
    claimAlone(store);
  });

  test("a commit is not done while the drive only has it in its own cache", () => {
    open();
    for (const name of ["fullfsync", "checkpoint_fullfsync"])
      expect(connection().pragma(name, { simple: true })).toBe(1);
  });
});

/** Makes the next write meet an I/O error, after which a connection is not trusted. */
function fault(of: Database.Database): void {
  before = (statement) => {
    if (statement !== "BEGIN IMMEDIATE" || of !== connection()) return;
    throw Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR_WRITE" });
  };
}

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

test("a group that runs again call by call ends with the first fault of the store", () => {
  const store = open();
  const used = newId();
  run(store, submit(used));
  connection().pragma("busy_timeout = 1");
  const other = new Database(path);
  let begun = 0;
  before = (statement) => {
    if (statement !== "BEGIN IMMEDIATE") return;
    begun += 1;
    // The group, its first call; then another process comes between.
    if (begun === 3) other.exec("BEGIN IMMEDIATE");
  };
  const calls = [newId(), used, ...Array.from({ length: 5 }, newId)].map((id) => submit(id));
  const [first, ...rest] = run(store, ...calls);
  other.close();
  expect(first?.failed).toBe(false);
  expect(rest).toHaveLength(6);
  for (const outcome of rest)
    expect(outcome).toMatchObject({ failed: true, code: "ledger_unavailable" });
  expect(begun).toBe(3);
});

test("a folder that is gone when the connection must be replaced is named once for all", () => {
  const store = open();
  fault(connection());
  run(store, submit(newId()));
  renameSync(folder, `${folder}-away`);
  const outcomes = run(store, submit(newId()), submit(newId()));
  renameSync(`${folder}-away`, folder);
  for (const outcome of outcomes)
    expect(outcome).toMatchObject({
      code: "ledger_unavailable",
      detail: expect.stringMatching(/jobs\.db was removed or replaced/) as string,
    });
  before = () => undefined;
  expect(run(store, submit(newId()))[0]?.failed).toBe(false);
});

test("opening a file that is kept locked ends after one busy timeout", () => {
  const other = new Database(path);
  other.exec("CREATE TABLE t (a); BEGIN EXCLUSIVE");
  const startedMs = systemClock.monotonicMs();
  const opening = { path, nowMs: NOW_MS, clock: systemClock, busyTimeoutMs: 100 };
  expect(() => new Store(opening)).toThrow(
    expect.objectContaining({ code: "SQLITE_BUSY" }) as Error,
  );
  expect(systemClock.monotonicMs() - startedMs).toBeLessThan(5_000);
  other.exec("ROLLBACK; DROP TABLE t");
  other.close();
  stores.push(new Store(opening));
});

test("closing waits for nobody who reads, and so keeps nobody from writing", () => {
  const patient = { path, nowMs: NOW_MS, clock: systemClock, busyTimeoutMs: 1_000_000 };
  const store = new Store(patient);
  const other = open();
  const reader = new Database(path, { readonly: true });
  try {
    reader.exec("BEGIN; SELECT count(*) FROM async_jobs");
    expect(run(store, submit(newId()))[0]?.failed).toBe(false);
    store.close();
    expect(run(other, submit(newId()))[0]?.failed).toBe(false);
  } finally {
    reader.close();
  }
});

test("retention forgets a bounded number of bytes at once, whatever the chunk", () => {
  const store = open();
  const large = "é".repeat(16 * 1024 * 1024);
  const jobIds = Array.from({ length: 4 }, newId);
  for (const jobId of jobIds) run(store, submit(jobId, large));
  run(store, { verb: "cancel", jobIds }, submit(newId()));
  const evict: Operation = { verb: "evict", ttlMs: -1, keep: 0, chunk: 500 };
  expect(run(store, evict)).toEqual([
    { failed: false, answer: { jobIds: jobIds.slice(0, 2), more: true } },
  ]);
  expect(counts(store)).toMatchObject({ terminal: 2 });
  expect(run(store, { ...evict, ttlMs: 1_000_000 })).toEqual([
    { failed: false, answer: { jobIds: jobIds.slice(2), more: false } },
  ]);
  expect(counts(store)).toMatchObject({ queued: 1, terminal: 0 });
});

test("only looks count as time spent looking", () => {
  const store = open();
  const jobId = newId();
  run(store, submit(jobId), { verb: "get", jobIds: [jobId] });
  expect(store.lookMs).toBe(0);
  let ms = 0;
  before = (statement) => {
    ms += statement.includes("json_each") ? 1 : 100;
  };
  const timed = new Store({
    path,
    nowMs: NOW_MS,
    clock: { ...systemClock, monotonicMs: () => ms },
    open: () => {
      const db = new Database(path, {
        verbose: (statement) => {
          before(String(statement));
        },
      });
      connections.push(db);
      return db;
    },
  });
  stores.push(timed);
  run(timed, submit(newId()), { verb: "look", jobIds: [jobId, jobId] }, { verb: "counts" });
  expect(timed.lookMs).toBe(1);
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

test("a file that is removed or replaced while in use is refused until it is back", () => {
  const store = open();
  const counts = (): Outcome | undefined =>
    store.run([{ nowMs: NOW_MS, operations: [{ verb: "counts" }] }])[0]?.[0];
  expect(counts()).toMatchObject({ failed: false });
  renameSync(path, `${path}.away`);
  const refused = { failed: true, code: "ledger_unavailable" };
  expect(counts()).toMatchObject(refused);
  writeFileSync(path, "");
  expect(counts()).toMatchObject(refused);
  expect(readFileSync(path, "utf8")).toBe("");
  renameSync(`${path}.away`, path);
  expect(counts()).toMatchObject({ failed: false });
});
