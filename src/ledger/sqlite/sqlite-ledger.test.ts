import Database from "better-sqlite3";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FAST_FOLDER } from "../../../test/ledger/sqlite-factory.js";
import { commitsInLog } from "../../../test/ledger/sqlite-log.js";
import type { NewJob } from "../../job/job.js";
import { systemClock, type Clock } from "../../runtime/clock.js";
import { silentLogger } from "../../runtime/logger.js";
import { idSource, systemRandom } from "../../runtime/random.js";
import { turnEnd } from "../../runtime/turn.js";
import type { ClaimedJob, Ledger, Settlement } from "../ledger.js";
import { openSqliteLedger } from "./sqlite-ledger.js";
import { startLedgerThread } from "./thread-link.js";

const WORKER = "worker-0000000a";
const BOUND = { maxDepth: 1_000_000 };
const nextId = idSource(systemClock, systemRandom());

let folder: string;
const ledgers: Ledger[] = [];
const threads: Worker[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(FAST_FOLDER, "jobtable-sqlite-"));
});

afterEach(async () => {
  await Promise.all(ledgers.splice(0).map((ledger) => ledger.close()));
  threads.length = 0;
  rmSync(folder, { recursive: true });
});

async function open(
  path = join(folder, "jobs.db"),
  clock: Clock = systemClock,
  isBusy = (): boolean => false,
): Promise<Ledger> {
  const ledger = await openSqliteLedger({
    path,
    clock,
    isBusy,
    logger: silentLogger,
    startThread: (data) => {
      const thread = startLedgerThread(data);
      threads.push(thread);
      return thread;
    },
  });
  ledgers.push(ledger);
  return ledger;
}

function newJob(fields: Partial<NewJob> = {}): NewJob {
  return { jobId: nextId(), task: "noop", schemaVersion: 1, payloadJson: "{}", ...fields };
}

function succeeded({ job }: ClaimedJob): Settlement {
  const end = { event: "succeed", resultJson: "1" } as const;
  return { jobId: job.jobId, workerId: WORKER, attempt: job.attempt, end };
}

describe("opening", () => {
  test("makes the folder and the file", async () => {
    const ledger = await open(join(folder, "a", "b", "jobs.db"));
    expect(await ledger.counts()).toEqual({
      queued: 0,
      running: 0,
      total: 0,
      oldestQueuedMs: null,
    });
  });

  test("what was recorded is there when it is opened again", async () => {
    const job = newJob({ payloadJson: '{"a":1}' });
    const first = await open();
    await first.submit([job], BOUND);
    await first.close();
    const second = await open();
    expect(await second.payload(job.jobId)).toBe('{"a":1}');
    expect(await second.counts()).toMatchObject({ queued: 1, total: 1 });
  });

  test("many at once on a file that does not exist yet", async () => {
    const opened = await Promise.all(Array.from({ length: 6 }, () => open()));
    await Promise.all(opened.map((ledger) => ledger.submit([newJob()], BOUND)));
    expect(await opened[0]?.counts()).toMatchObject({ queued: 6 });
  });

  const refused: [name: string, prepare: (path: string) => void, code: string, words: RegExp][] = [
    ["a folder", mkdirSync, "ledger_unavailable", /is a folder/],
    [
      "a file that is no database",
      (path) => {
        writeFileSync(path, "not a database, but long enough to look like a file ".repeat(100));
      },
      "ledger_unreadable",
      /not a SQLite database/,
    ],
    [
      "a newer ledger",
      (path) => {
        const db = new Database(path);
        db.exec(`CREATE TABLE jobtable_migrations (number INTEGER, name TEXT, applied_at TEXT);
          INSERT INTO jobtable_migrations VALUES (9999, 'from-the-future', '')`);
        db.close();
      },
      "ledger_newer",
      /9999 \(from-the-future\).*upgrade/,
    ],
    [
      "a database of something else",
      (path) => {
        const db = new Database(path);
        db.exec("CREATE TABLE async_jobs (mine TEXT)");
        db.close();
      },
      "ledger_unreadable",
      /tables of something else/,
    ],
  ];

  test.each(refused)("%s is refused, by path and reason", async (_, prepare, code, words) => {
    const path = join(folder, "there.db");
    prepare(path);
    const error: unknown = await open(path).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: "LedgerError", code });
    expect(String(error)).toContain(path);
    expect(String(error)).toMatch(words);
    expect(String(error)).not.toContain("\n");
  });

  test("a path through a file is refused", async () => {
    writeFileSync(join(folder, "file"), "");
    await expect(open(join(folder, "file", "jobs.db"))).rejects.toMatchObject({
      code: "ledger_unavailable",
    });
  });
});

describe("opening where nothing can be written is refused at once:", () => {
  /** As someone whom permissions bind: by the ledger's own check, or where only SQLite meets them, by its. */
  async function refusal(path: string): Promise<unknown> {
    const root = process.geteuid?.() === 0;
    if (root) process.seteuid?.(65_534);
    try {
      return await open(path).catch((reason: unknown) => reason);
    } finally {
      if (root) process.seteuid?.(0);
    }
  }

  const cases: [name: string, prepare: () => string, words: RegExp][] = [
    [
      "a folder that can't be made",
      () => "/proc/nope/jobs.db",
      /folder can't be made.*name a file/,
    ],
    [
      "a folder that can't be written",
      () => {
        chmodSync(folder, 0o555);
        return join(folder, "jobs.db");
      },
      /check (path and )?permissions/,
    ],
    [
      "a file that can't be written",
      () => {
        const path = join(folder, "jobs.db");
        new Database(path).exec("CREATE TABLE t (a)").close();
        chmodSync(path, 0o444);
        chmodSync(folder, 0o777);
        return path;
      },
      /check (path and )?permissions/,
    ],
  ];

  test.each(cases)("%s", async (_, prepare, words) => {
    const path = prepare();
    const error = await refusal(path);
    chmodSync(folder, 0o700);
    expect(error).toMatchObject({ name: "LedgerError", code: "ledger_unavailable" });
    expect(String(error)).toContain(path);
    expect(String(error)).toMatch(words);
  });
});

describe("calls", () => {
  test.each([true, false])(
    "a claim that a submit's hint sets off finds its job, in the same commit (busy loop: %s)",
    async (isBusy) => {
      const ledger = await open(join(folder, "jobs.db"), systemClock, () => isBusy);
      const before = commitsInLog(join(folder, "jobs.db"));
      const claimed = new Promise<ClaimedJob[]>((resolve) => {
        ledger.onWork(() => {
          resolve(ledger.claim({ workerId: WORKER, tasks: ["noop"], limit: 1 }));
        });
      });
      const job = newJob();
      await ledger.submit([job], BOUND);
      expect((await claimed).map((each) => each.job.jobId)).toEqual([job.jobId]);
      expect(commitsInLog(join(folder, "jobs.db"))).toBe(before + 1);
    },
  );

  test("that are at fault reject alone", async () => {
    const ledger = await open();
    const job = newJob();
    const outcomes = await Promise.allSettled(
      [newJob(), job, job, newJob()].map((each) => ledger.submit([each], BOUND)),
    );
    expect(outcomes.map(({ status }) => status)).toEqual([
      "fulfilled",
      "fulfilled",
      "rejected",
      "fulfilled",
    ]);
    expect(await ledger.counts()).toMatchObject({ queued: 3 });
  });

  test("with what no thread can take reject alone", async () => {
    const ledger = await open();
    const unclonable = { toString: () => "{}" } as Partial<NewJob>["payloadJson"] & object;
    const outcomes = await Promise.allSettled([
      ledger.submit([newJob()], BOUND),
      ledger.submit([newJob({ payloadJson: unclonable })], BOUND),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
  });
});

test("a list takes a status that is named often as it takes it once", async () => {
  const ledger = await open();
  const job = newJob();
  await ledger.submit([job], BOUND);
  const claimed = await ledger.claim({ workerId: WORKER, tasks: ["noop"], limit: 1 });
  await ledger.settle(claimed.map(succeeded));
  const statuses = [...Array<"failed">(6).fill("failed"), "succeeded" as const];
  expect(await ledger.list({ statuses, limit: 10 })).toMatchObject({
    jobs: [{ jobId: job.jobId }],
  });
});

describe("claims over many tasks", () => {
  test("come by priority, due time and id, whatever the task and however many", async () => {
    const ledger = await open();
    const tasks = ["a", "b", "c", "d", "e"];
    const dueMs = systemClock.nowMs() - 60_000;
    const jobs = Array.from({ length: 300 }, (_, index) =>
      newJob({
        task: tasks[(index * index) % 5] ?? "a",
        priority: (index * 7) % 3,
        runAtMs: dueMs + ((index * 13) % 50),
      }),
    );
    await ledger.submit(jobs, BOUND);
    const expected = [...jobs].sort(
      (a, b) =>
        (b.priority ?? 0) - (a.priority ?? 0) ||
        (a.runAtMs ?? 0) - (b.runAtMs ?? 0) ||
        (a.jobId < b.jobId ? -1 : 1),
    );
    const claimed: string[] = [];
    for (const limit of [1, 2, 7, 40, 1_000])
      for (const { job } of await ledger.claim({ workerId: WORKER, tasks, limit }))
        claimed.push(job.jobId);
    expect(claimed).toEqual(expected.map(({ jobId }) => jobId));
    expect(await ledger.counts()).toMatchObject({ queued: 0, running: 300 });
  });
});

describe("the thread", () => {
  test("that dies fails what is under way, and is replaced", async () => {
    const ledger = await open();
    const kept = newJob();
    await ledger.submit([kept], BOUND);
    const underWay = Promise.allSettled([ledger.counts(), ledger.submit([newJob()], BOUND)]);
    await threads[0]?.terminate();
    for (const outcome of await underWay)
      if (outcome.status === "rejected")
        expect(outcome.reason).toMatchObject({ code: "ledger_unavailable" });
    expect(await ledger.get([kept.jobId])).toMatchObject([{ jobId: kept.jobId }]);
    expect(threads).toHaveLength(2);
  });

  test.each([
    { when: "the loop waits for it", isBusy: false, failed: 1 },
    { when: "the loop is busy", isBusy: true, failed: 2 },
  ])(
    "that dies while $when takes $failed of 4 along: the others go to the next one",
    async ({ isBusy, failed }) => {
      const opened = 'require("node:worker_threads").parentPort.postMessage({ kind: "opened" })';
      const deaf = `${opened}; setInterval(() => {}, 1000)`;
      const ledger = await openSqliteLedger({
        path: join(folder, "jobs.db"),
        clock: systemClock,
        logger: silentLogger,
        isBusy: () => isBusy,
        startThread: (data) => {
          const thread =
            threads.length === 0 ? new Worker(deaf, { eval: true }) : startLedgerThread(data);
          threads.push(thread);
          return thread;
        },
      });
      ledgers.push(ledger);
      const outcomes: Promise<string>[] = [];
      for (let turn = 0; turn < 4; turn += 1) {
        const submitted = ledger.submit([newJob()], BOUND);
        outcomes.push(
          submitted.then(
            () => "done",
            () => "failed",
          ),
        );
        await turnEnd();
      }
      await threads[0]?.terminate();
      const expected = Array.from({ length: 4 }, (_, turn) => (turn < failed ? "failed" : "done"));
      expect(await Promise.all(outcomes)).toEqual(expected);
      expect(await ledger.counts()).toMatchObject({ queued: 4 - failed });
    },
  );

  test("that dies may have missed changes: all who listen are told", async () => {
    const ledger = await open();
    const job = newJob();
    await ledger.submit([job], BOUND);
    const told = Promise.all([
      new Promise<void>((resolve) => ledger.watch(job.jobId, resolve)),
      new Promise<void>((resolve) => ledger.onWork(resolve)),
    ]);
    await threads[0]?.terminate();
    expect(await told).toHaveLength(2);
  });

  test("that can't be started again rejects calls with the reason, until it can", async () => {
    const path = join(folder, "jobs.db");
    let elapsedMs = 0;
    const clock = { ...systemClock, monotonicMs: () => elapsedMs };
    const ledger = await open(path, clock);
    await ledger.submit([newJob()], BOUND);
    for (const file of readdirSync(folder)) renameSync(join(folder, file), `${folder}.${file}`);
    mkdirSync(path);
    await threads[0]?.terminate();
    const reason = { code: "ledger_unavailable", message: expect.stringContaining(path) as string };
    await expect(ledger.counts()).rejects.toMatchObject(reason);
    await expect(ledger.counts()).rejects.toMatchObject(reason);
    const starts = threads.length;
    await expect(ledger.counts()).rejects.toMatchObject(reason);
    expect(threads).toHaveLength(starts);
    rmSync(path, { recursive: true });
    for (const file of ["jobs.db", "jobs.db-wal", "jobs.db-shm"])
      renameSync(`${folder}.${file}`, join(folder, file));
    elapsedMs += 60_000;
    expect(await ledger.counts()).toMatchObject({ queued: 1 });
  });

  test("is not asked again once it is closed", async () => {
    const ledger = await open();
    await ledger.close();
    await expect(ledger.counts()).rejects.toMatchObject({ code: "ledger_closed" });
    expect(threads).toHaveLength(1);
  });

  test("has ended when close has resolved", async () => {
    const ledger = await open();
    await ledger.close();
    expect(threads[0]?.threadId).toBe(-1);
  });
});

describe("another connection on the same file", () => {
  test("wakes watchers of what it changed, and no others", async () => {
    const [mine, other] = [await open(), await open()];
    const [changed, still] = [newJob(), newJob({ task: "other" })];
    await mine.submit([changed, still], BOUND);
    await baseline(mine, other, [changed.jobId, still.jobId]);
    let stillTold = 0;
    mine.watch(still.jobId, () => (stillTold += 1));
    const told = heard(mine, changed.jobId);
    const [claimed] = await other.claim({ workerId: WORKER, tasks: ["noop"], limit: 1 });
    await told;
    const ended = heard(mine, changed.jobId);
    if (claimed === undefined) throw new Error("nothing was claimed");
    await other.settle([succeeded(claimed)]);
    await ended;
    expect(await mine.get([changed.jobId])).toMatchObject([{ status: "succeeded" }]);
    // The first look tells all, since nothing was known before; the second only what differs.
    expect(stillTold).toBeLessThanOrEqual(1);
  });

  test("wakes those who look for work", async () => {
    const [mine, other] = [await open(), await open()];
    const told = new Promise<void>((resolve) => mine.onWork(resolve));
    await other.submit([newJob()], BOUND);
    await told;
    expect(await mine.claim({ workerId: WORKER, tasks: ["noop"], limit: 1 })).toHaveLength(1);
  });

  /** Lets the first look pass, which tells everyone. */
  async function baseline(mine: Ledger, other: Ledger, jobIds: string[]): Promise<void> {
    const told = Promise.all(jobIds.map((jobId) => heard(mine, jobId)));
    await other.submit([newJob({ task: "elsewhere" })], BOUND);
    await told;
  }

  function heard(ledger: Ledger, jobId: string): Promise<void> {
    return new Promise((resolve) => {
      const leave = ledger.watch(jobId, () => {
        leave();
        resolve();
      });
    });
  }
});
