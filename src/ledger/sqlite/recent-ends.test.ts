import Database from "better-sqlite3";
import fc from "fast-check";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { newlyQueued } from "../../job/transition.js";
import { FAST_FOLDER } from "../../../test/ledger/sqlite-factory.js";
import { VirtualClock } from "../../../test/virtual-clock.js";
import { migrate, migrations } from "./migrate.js";
import type { Answers, Operation, Outcome } from "./protocol.js";
import { RecentEnds } from "./recent-ends.js";
import { toIso, toSubmittedRow } from "./rows.js";
import { prepareStatements, type Statements } from "./statements.js";
import { Store } from "./store.js";
import { toClaimedJobs } from "./translating.js";

const NOW_MS = Date.UTC(2030, 0, 1);
const LIMIT = 1_000;
/** The frequent ones several times. */
const ACTS = ["submit", "submit", "claim", "settle", "cancel", "look", "look", "evict"] as const;

describe("the ends since the last time", () => {
  let db: Database.Database;
  let run: Statements;
  let ended: number;

  beforeEach(() => {
    db = new Database(":memory:");
    migrate(db, ":memory:", migrations(), NOW_MS);
    run = prepareStatements(db);
    ended = 0;
  });

  afterEach(() => {
    db.close();
  });

  /** @returns its rowid. */
  function end(atMs: number): number {
    ended += 1;
    const insert =
      db.prepare(`INSERT INTO async_jobs (job_id, task, queue, status, priority, run_at,
      attempt, max_attempts, created_at, finished_at, schema_version, payload_json)
      VALUES (?, 't', 'default', 'cancelled', 0, ?, 0, 1, ?, ?, 1, '{}')`);
    const id = String(ended).padStart(26, "0");
    return Number(insert.run(id, toIso(NOW_MS), toIso(NOW_MS), toIso(atMs)).lastInsertRowid);
  }

  const since = (ends: RecentEnds, limit = LIMIT, count = ended): number[] | null =>
    ends.since(run, { ended: count, terminal: count }, limit)?.rowids ?? null;

  const knowing = (count: number): RecentEnds => {
    const ends = new RecentEnds(count);
    expect(since(ends)).toBeNull();
    return ends;
  };

  test("are those that came, whatever their times say, and none of them twice", () => {
    for (let n = 0; n < 20; n += 1) end(NOW_MS + n);
    const ends = knowing(8);
    expect(since(ends)).toEqual([]);
    const [late, next] = [end(NOW_MS + 14), end(NOW_MS + 20)];
    expect(since(ends)).toEqual([next, late]);
    expect(since(ends)).toEqual([]);
  });

  test("can't be told when a clock was set back below all that is known, nor when they are too many", () => {
    for (let n = 0; n < 20; n += 1) end(NOW_MS + n);
    const ends = knowing(8);
    end(NOW_MS - 60_000);
    expect(since(ends)).toBeNull();
    const next = end(NOW_MS + 30);
    expect(since(ends)).toEqual([next]);
    for (let n = 0; n < 5; n += 1) end(NOW_MS + 40 + n);
    expect(since(ends, 4)).toBeNull();
    expect(since(ends, 4)).toEqual([]);
  });

  test("can't be told when one of them was forgotten meanwhile, or a count came from elsewhere", () => {
    const ends = knowing(8);
    db.prepare("DELETE FROM async_jobs WHERE rowid = ?").run(end(NOW_MS));
    expect(since(ends)).toBeNull();
    expect(since(ends, LIMIT, ended - 1)).toBeNull();
    expect(ends.since(run, { ended: ended - 1, terminal: ended - 3 }, LIMIT)).toEqual({
      rowids: [],
      forgotten: true,
    });
  });

  test("that have one time are told, though not all of that time are known", () => {
    for (let n = 0; n < 20; n += 1) end(NOW_MS);
    const ends = knowing(8);
    end(NOW_MS);
    expect(since(ends)).toBeNull();
    expect(since(ends)).toEqual([]);
    const next = end(NOW_MS + 1);
    expect(since(ends)).toEqual([next]);
  });

  test("are found on and on, and what is known stays bounded", () => {
    const ends = knowing(8);
    for (let round = 0; round < 20; round += 1) {
      const found = [2, 0, 1].map((late) => end(NOW_MS + round * 3 - late));
      expect(since(ends)?.sort((a, b) => a - b)).toEqual(found);
    }
    end(NOW_MS + 20);
    expect(since(ends)).toBeNull();
  });
});

describe("over several connections", () => {
  let folder: string;
  let stores: Store[];

  beforeEach(() => {
    folder = mkdtempSync(join(FAST_FOLDER, "jobtable-ends-"));
    stores = [];
  });

  afterEach(() => {
    for (const store of stores.splice(0)) store.close();
    rmSync(folder, { recursive: true });
  });

  function open(): Store {
    const path = join(folder, "jobs.db");
    const store = new Store({ path, nowMs: NOW_MS, clock: new VirtualClock() });
    stores.push(store);
    return store;
  }

  function outcomes(store: Store, nowMs: number, ...operations: Operation[]): Outcome[] {
    return store.run([{ nowMs, operations }])[0] ?? [];
  }

  function answer<V extends Operation["verb"]>(
    store: Store,
    nowMs: number,
    operation: Extract<Operation, { verb: V }>,
  ): Answers[V] {
    const [outcome] = outcomes(store, nowMs, operation);
    if (outcome?.failed !== false) throw new Error(JSON.stringify(outcome));
    return outcome.answer as Answers[V];
  }

  let lastId = 0;
  function submit(count: number): Operation & { verb: "submit" } {
    const jobs = Array.from({ length: count }, () => {
      const jobId = `01J${String((lastId += 1)).padStart(23, "0")}`;
      const job = newlyQueued({ jobId, task: "t", schemaVersion: 1, payloadJson: "{}" }, NOW_MS);
      return toSubmittedRow(job, null, "{}");
    });
    return { verb: "submit", maxDepth: 1_000_000, jobs };
  }

  const ids = (cells: readonly unknown[]): unknown[] =>
    cells.filter((_, at) => at % 2 === 0).sort();

  const steps = fc.array(
    fc.record({
      by: fc.nat(1),
      // Each process's clock says what it likes.
      clockMs: fc.integer({ min: -5_000, max: 5_000 }),
      act: fc.constantFrom(...ACTS),
      count: fc.integer({ min: 1, max: 5 }),
    }),
    { minLength: 30, maxLength: 60 },
  );

  test("every end is told once or can't be told, and all that runs is, whoever writes when", () => {
    let told = 0;
    fc.assert(
      fc.property(steps, (sequence) => {
        const [observer, ...writers] = [open(), open(), open()];
        const queued = new Set<string>();
        const running = new Map<string, number>();
        let fresh: string[] = [];
        const start = answer(observer, NOW_MS, { verb: "recent", limit: LIMIT });
        expect(start).toBeNull();
        for (const { by, clockMs, act, count } of sequence) {
          const store = writers[by];
          if (store === undefined) continue;
          const nowMs = NOW_MS + clockMs;
          const some = <T>(of: Iterable<T>): T[] => [...of].slice(0, count);
          switch (act) {
            case "submit": {
              const operation = submit(count);
              for (const row of operation.jobs) queued.add(String(row[0]));
              answer(store, NOW_MS - 10_000, operation);
              break;
            }
            case "claim": {
              const claim = { verb: "claim", workerId: "w", tasks: ["t"], limit: count } as const;
              const claimed = toClaimedJobs(answer(store, nowMs + 60_000, claim), "w");
              for (const { job } of claimed) {
                queued.delete(job.jobId);
                running.set(job.jobId, job.attempt);
              }
              break;
            }
            case "settle": {
              const held = some(running);
              const ends = held.map(
                ([id, attempt]) => [id, "w", attempt, "succeed", "1", 0] as const,
              );
              expect(answer(store, nowMs, { verb: "settle", ends })).toBeNull();
              for (const [id] of held) {
                running.delete(id);
                fresh.push(id);
              }
              break;
            }
            case "cancel": {
              const jobIds = some(queued);
              answer(store, nowMs, { verb: "cancel", jobIds });
              for (const id of jobIds) {
                queued.delete(id);
                fresh.push(id);
              }
              break;
            }
            case "evict":
              answer(store, nowMs, { verb: "evict", ttlMs: 3_000, keep: 10, chunk: 10 });
              break;
            case "look": {
              const recent = answer(observer, nowMs, { verb: "recent", limit: LIMIT });
              if (recent !== null) {
                told += recent.ended.length;
                expect(ids(recent.ended)).toEqual(fresh.sort());
                expect(ids(recent.running)).toEqual([...running.keys()].sort());
              }
              fresh = [];
              break;
            }
            default:
              act satisfies never;
          }
        }
        for (const store of stores.splice(0)) store.close();
        for (const suffix of ["", "-wal", "-shm"])
          rmSync(join(folder, `jobs.db${suffix}`), { force: true });
      }),
      { numRuns: 100 },
    );
    expect(told).toBeGreaterThan(10);
  });

  test("what is told in a transaction that fails is not taken for told", () => {
    const [observer, writer] = [open(), open()];
    answer(observer, NOW_MS, { verb: "recent", limit: LIMIT });
    const operation = submit(2);
    answer(writer, NOW_MS, operation);
    const jobId = String(operation.jobs[0]?.[0]);
    answer(writer, NOW_MS, { verb: "cancel", jobIds: [jobId] });
    // The second of these fails, since its id is taken, so that both are done again.
    const group = outcomes(observer, NOW_MS, { verb: "recent", limit: LIMIT }, operation);
    expect(group.map(({ failed }) => failed)).toEqual([false, true]);
    expect(group[0]).toEqual({ failed: false, answer: null });
    // Their order decides what is known then; the end itself is told by whoever looks at all.
    answer(observer, NOW_MS, { verb: "recent", limit: LIMIT });
    expect(answer(observer, NOW_MS, { verb: "recent", limit: LIMIT })?.ended).toEqual([]);
  });
});
