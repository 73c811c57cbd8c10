/**
 * What the ledger on SQLite does for its callers, counted at the database thread: statements by name,
 * commits that wait for the disk (FULL) and those that don't, messages between the threads, and the rows
 * of async_jobs that were visited (an entry of an index and the row behind it count as two where a
 * statement goes to both). How a statement finds its rows: src/ledger/sqlite/statements.test.ts.
 */
import { expect, test } from "vitest";
import { createRig, stopped, submitted } from "../engine-rig.js";
import {
  accept,
  beat,
  beatOf,
  claim,
  claimOf,
  HOUR_MS,
  newJobs,
  PATIENT,
  ROOMY,
  SUCCEED,
  WORKER,
} from "../ledger/acts.js";
import { cost } from "./cost.js";
import { withCountedSqlite, type CountedSqlite } from "./counted-sqlite.js";

const zero = { name: "zero", run: () => null };

/** What a transaction costs that reads, one that writes what may be lost, and one that waits for the disk. */
const READ = { begin: 1, commit: 1, messages: 2 };
const NOTE = { beginWrite: 1, commit: 1, NORMAL: 1, messages: 2 };
const RECORD = { beginWrite: 1, commit: 1, FULL: 1, messages: 2 };
/** The counts are read once and written once, however many jobs move. */
const COUNTED = { counts: 1, setCounts: 1 };

const STORE = "src/ledger/sqlite/store.ts and the file of the verb beside it";

test.each([1, 100])("the life of %i jobs in one list: submit, claim, settle", (jobs) =>
  withCountedSqlite(async ({ ledger, spent }) => {
    await accept(ledger, newJobs(jobs));
    expect(spent(), cost("a submit", STORE)).toEqual({ ...RECORD, ...COUNTED, submit: jobs });
    const claimed = await claim(ledger, jobs);
    expect(spent(), cost("a claim", STORE)).toEqual({
      ...NOTE,
      ...COUNTED,
      // Whether something is due is asked before the lock is taken: the group, and its first job.
      nextPriority: 2,
      due: 1,
      claim: 1,
      rows: 3 + 2 * jobs,
    });
    await ledger.settle(claimed.map(({ job }) => ({ ...claimOf(job), end: SUCCEED })));
    expect(spent(), cost("a settle", STORE)).toEqual({
      ...RECORD,
      ...COUNTED,
      succeed: jobs,
      rows: jobs,
    });
  }),
);

test("100 calls of one turn share a message and a commit, and a later one has its own", () =>
  withCountedSqlite(async ({ ledger, spent }) => {
    await Promise.all(newJobs(100).map((job) => ledger.submit([job], ROOMY)));
    expect(spent(), cost("100 calls of one turn", "src/ledger/sqlite/thread-link.ts")).toEqual({
      ...RECORD,
      ...COUNTED,
      submit: 100,
    });
    await accept(ledger, newJobs(1));
    expect(spent()).toMatchObject(RECORD);
  }));

test("100 concurrent submits through the engine: two messages, one commit", () =>
  withCountedSqlite(async (counted) => {
    const { ledger, clock, spent } = counted;
    const rig = createRig({ ledger, clock, worker: false, tasks: [zero] });
    await rig.engine.start();
    try {
      await submitted(rig, "zero");
      await firstSweepOver(counted);
      await Promise.all(Array.from({ length: 100 }, () => submitted(rig, "zero")));
      expect(
        spent(),
        cost("100 submits", "src/engine/batcher.ts and src/ledger/sqlite/thread-link.ts"),
      ).toEqual({ ...RECORD, ...COUNTED, submit: 100 });
    } finally {
      await stopped(rig);
    }
  }));

/**
 * How calls fall into messages follows the disk and the machine: 3 commits and 6 messages were seen in
 * five runs. A commit for each job would be a hundred.
 */
const MOST_COMMITS = 10;

test("100 concurrent jobs with a wait each, through an engine that runs them", () =>
  withCountedSqlite(async (counted) => {
    const { ledger, clock, spent } = counted;
    const rig = createRig({ ledger, clock, tasks: [zero] });
    await rig.engine.start();
    try {
      await submitted(rig, "zero");
      await firstSweepOver(counted);
      const jobIds = await Promise.all(Array.from({ length: 100 }, () => submitted(rig, "zero")));
      await Promise.all(
        jobIds.map((jobId) => rig.engine.wait(jobId, { timeoutMs: 60_000, until: "end" })),
      );
      const { FULL = 0, commit = 0, messages = 0, submit, succeed } = spent();
      const what = `100 jobs took ${String(commit)} commits, ${String(FULL)} of them FULL, and ${String(messages)} messages`;
      const where = "src/engine/batcher.ts, worker.ts and src/ledger/sqlite/thread-link.ts";
      expect([submit, succeed], cost(what, where)).toEqual([100, 100]);
      expect(commit, cost(what, where)).toBeLessThanOrEqual(MOST_COMMITS);
      expect(messages, cost(what, where)).toBeLessThanOrEqual(2 * MOST_COMMITS);
    } finally {
      await stopped(rig);
    }
  }));

/** The first submit sets off a sweep of two calls; calls are answered in their order. */
async function firstSweepOver({ ledger, spent }: CountedSqlite): Promise<void> {
  for (let call = 0; call < 4; call += 1) await ledger.counts();
  spent();
}

test.each([
  ["500 have ended, 200 wait", 500, 200],
  ["5,000 have ended, 2,000 wait", 5_000, 2_000],
])("rows visited for four jobs, where %s", (_, ended, queued) =>
  withCountedSqlite(async ({ ledger, spent }) => {
    const old = await accept(ledger, newJobs(ended));
    await ledger.cancel(old.map(({ jobId }) => jobId));
    await accept(ledger, newJobs(queued));
    spent();
    const rows: Record<string, number | undefined> = {};
    const claimed = await claim(ledger, 4);
    rows["claim"] = spent()["rows"];
    await ledger.heartbeat(
      beat(),
      claimed.map(({ job }) => beatOf(job)),
    );
    rows["heartbeat"] = spent()["rows"];
    await ledger.get(claimed.map(({ job }) => job.jobId));
    rows["get"] = spent()["rows"];
    await ledger.counts();
    rows["counts"] = spent()["rows"];
    await ledger.rescue(PATIENT);
    rows["rescue"] = spent()["rows"];
    await ledger.settle(claimed.map(({ job }) => ({ ...claimOf(job), end: SUCCEED })));
    rows["settle"] = spent()["rows"];
    await ledger.evict({ ttlMs: HOUR_MS, keep: ended, chunk: 500 });
    rows["evict"] = spent()["rows"];
    await accept(ledger, newJobs(4));
    rows["submit"] = spent()["rows"];
    expect(rows, cost("rows visited", "src/ledger/sqlite/statements.ts and claiming.ts")).toEqual({
      // As above: three to find the group, then four in the index and four in the table.
      claim: 11,
      heartbeat: 4,
      get: 4,
      // The group, whether there is another, and the first in it, which is the oldest.
      counts: 3,
      rescue: 4,
      settle: 4,
      // Four are too many: measured, found and removed.
      evict: 12,
      submit: undefined,
    });
  }),
);

test("what an engine with nothing to do asks for", () =>
  withCountedSqlite(async ({ ledger, spent }) => {
    await ledger.claim({ workerId: WORKER, tasks: ["a", "b"], limit: 4 });
    expect(spent(), cost("a claim that finds nothing", STORE)).toEqual({
      ...READ,
      nextPriority: 2,
    });
    await ledger.heartbeat(beat(), []);
    expect(spent(), cost("a worker's beat", STORE)).toEqual({ ...NOTE, beatWorker: 1 });
    await ledger.workers();
    expect(spent(), cost("a look at the workers", STORE)).toEqual({ ...READ, workers: 1 });
    await ledger.rescue(PATIENT);
    // FULL, but with nothing to write: then SQLite does not wait for the disk.
    expect(spent(), cost("a rescue of nobody", STORE)).toEqual({ ...RECORD, workers: 1, stuck: 1 });
    const nobody = { workerId: WORKER, graceMs: 1_000, workerTimeoutMs: 1_000, chunk: 500 };
    await ledger.reject(nobody);
    expect(spent(), cost("a reject of nothing", STORE)).toEqual({
      ...RECORD,
      living: 1,
      nextTask: 1,
    });
    await ledger.evict({ ttlMs: HOUR_MS, keep: 100, chunk: 500 });
    expect(spent(), cost("an evict of nothing", STORE)).toEqual({
      ...NOTE,
      counts: 1,
      evictBytes: 1,
      evict: 1,
    });
    await ledger.counts();
    expect(spent(), cost("the counts", STORE)).toEqual({ ...READ, counts: 1 });
  }));
