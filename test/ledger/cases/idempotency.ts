/** A key names one record in the whole ledger, for as long as the record is there. */
import { expect } from "vitest";
import type { NewJob } from "../../../src/job/job.js";
import { ALL_STATUSES, isTerminal } from "../../../src/job/state.js";
import type { Ledger, SubmitOutcome } from "../../../src/ledger/ledger.js";
import { acceptOne, jobIn, look, newJob, newJobs, numbers, present, ROOMY, see } from "../acts.js";
import type { Cases } from "../harness.js";

const FULL = { maxDepth: 0 };

export function keyed(key: string, fingerprint = "f", given: Partial<NewJob> = {}): NewJob {
  return newJob({ ...given, idempotency: { key, fingerprint } });
}

async function submitOne(ledger: Ledger, job: NewJob, bound = ROOMY): Promise<SubmitOutcome> {
  const outcomes = await ledger.submit([job], bound);
  expect(outcomes).toHaveLength(1);
  return present(outcomes[0]);
}

/** The kind, and which job it is about: `full` for those that name none. */
export function told(outcomes: readonly SubmitOutcome[]): string[] {
  return outcomes.map((one) => (one.kind === "full" ? "full" : `${one.kind} ${one.job.jobId}`));
}

export function idempotencyCases(cases: Cases): void {
  repeatCases(cases);
  mixedCases(cases);
  racingCases(cases);
  evictedCases(cases);
  textCases(cases);
}

function repeatCases({ check }: Cases): void {
  for (const status of ALL_STATUSES)
    check(`a key whose job is ${status}: repeated, with the job as it is now`, async (h) => {
      const idempotency = { key: "k", fingerprint: "f" };
      const { job } = await jobIn(h.ledger, status, { idempotency, requestId: "first" });
      const before = await h.ledger.counts();
      const again = keyed("k", "f", { requestId: "second" });
      for (const bound of [ROOMY, FULL, { maxDepth: -1 }])
        expect(await submitOne(h.ledger, again, bound)).toEqual({ kind: "repeated", job });
      expect(await look(h.ledger, again.jobId)).toBeNull();
      expect(await see(h.ledger, job.jobId)).toEqual(job);
      const { queued, running, total } = await h.ledger.counts();
      expect({ queued, running, total }).toEqual({
        queued: before.queued,
        running: before.running,
        total: before.total,
      });
    });

  check("the same key with another fingerprint is a conflict, whatever the bound", async (h) => {
    const job = await acceptOne(h.ledger, keyed("k", "f"));
    expect(job.idempotencyKey).toBe("k");
    for (const bound of [ROOMY, FULL])
      expect(await submitOne(h.ledger, keyed("k", "other"), bound)).toEqual({
        kind: "conflict",
        job,
      });
    expect(await numbers(h.ledger)).toEqual([1, 0, 1]);
  });

  check("a key holds over all tasks, and no key is none", async (h) => {
    const job = await acceptOne(h.ledger, keyed("k", "f", { task: "ocr" }));
    expect(await submitOne(h.ledger, keyed("k", "f", { task: "echo" }))).toEqual({
      kind: "repeated",
      job,
    });
    for (const one of newJobs(3)) expect((await submitOne(h.ledger, one)).kind).toBe("accepted");
    expect((await submitOne(h.ledger, newJob({ idempotency: null }))).kind).toBe("accepted");
    expect(await numbers(h.ledger)).toEqual([5, 0, 5]);
  });

  check("a new key is refused at the bound like any job, and is not taken by it", async (h) => {
    const refused = keyed("k");
    expect(await submitOne(h.ledger, refused, FULL)).toEqual({ kind: "full", depth: 0 });
    expect(await submitOne(h.ledger, refused)).toMatchObject({
      kind: "accepted",
      job: { jobId: refused.jobId },
    });
  });

  check("the very same submit again, id and all, is repeated", async (h) => {
    const given = keyed("k");
    const job = await acceptOne(h.ledger, given);
    expect(await submitOne(h.ledger, given)).toEqual({ kind: "repeated", job });
  });

  check("an id that is there already is a bug where its key is new", async (h) => {
    const { jobId } = await acceptOne(h.ledger);
    for (const bound of [ROOMY, FULL])
      await expect(
        h.ledger.submit([keyed("a"), keyed("k", "f", { jobId })], bound),
      ).rejects.toThrow(jobId);
    expect(await numbers(h.ledger)).toEqual([1, 0, 1]);
    expect((await submitOne(h.ledger, keyed("a"))).kind).toBe("accepted");
  });

  check("an id twice in one call is a bug, also where its key is known", async (h) => {
    const { jobId } = await acceptOne(h.ledger, keyed("k"));
    const twice = [keyed("k", "f", { jobId }), keyed("k", "f", { jobId })];
    await expect(h.ledger.submit(twice, ROOMY)).rejects.toThrow(jobId);
  });
}

function mixedCases({ check }: Cases): void {
  check("one call with known keys, new ones and none: each its own, in order", async (h) => {
    const old = await acceptOne(h.ledger, keyed("old"));
    const jobs = [
      newJob(),
      keyed("old"),
      keyed("new"),
      keyed("new", "other"),
      keyed("old", "other"),
      keyed("new"),
      newJob(),
    ];
    const id = (at: number): string => present(jobs[at]).jobId;
    const outcomes = await h.ledger.submit(jobs, ROOMY);
    expect(told(outcomes)).toEqual([
      `accepted ${id(0)}`,
      `repeated ${old.jobId}`,
      `accepted ${id(2)}`,
      `conflict ${id(2)}`,
      `conflict ${old.jobId}`,
      `repeated ${id(2)}`,
      `accepted ${id(6)}`,
    ]);
    expect(await numbers(h.ledger)).toEqual([4, 0, 4]);
    for (const outcome of outcomes)
      if (outcome.kind !== "full")
        expect(await see(h.ledger, outcome.job.jobId)).toEqual(outcome.job);
  });

  check("repeated ones take no room, and what is refused has no mates", async (h) => {
    const old = await acceptOne(h.ledger, keyed("old"));
    const jobs = [
      keyed("old"),
      keyed("a"),
      keyed("a"),
      keyed("b"),
      keyed("c"),
      keyed("c"),
      keyed("c", "other"),
      keyed("old", "other"),
      newJob(),
    ];
    const outcomes = await h.ledger.submit(jobs, { maxDepth: 3 });
    expect(told(outcomes)).toEqual([
      `repeated ${old.jobId}`,
      `accepted ${present(jobs[1]).jobId}`,
      `repeated ${present(jobs[1]).jobId}`,
      `accepted ${present(jobs[3]).jobId}`,
      "full",
      "full",
      "full",
      `conflict ${old.jobId}`,
      "full",
    ]);
    expect(outcomes.filter((one) => one.kind === "full").map((one) => one.depth)).toEqual([
      3, 3, 3, 3,
    ]);
    expect(await numbers(h.ledger)).toEqual([3, 0, 3]);
  });

  check("a hundred of one key in one call are one record", async (h) => {
    const jobs = Array.from({ length: 100 }, () => keyed("k"));
    const outcomes = await h.ledger.submit(jobs, ROOMY);
    const first = present(jobs[0]).jobId;
    expect(told(outcomes)).toEqual(
      jobs.map((_, at) => `${at === 0 ? "accepted" : "repeated"} ${first}`),
    );
    expect(await numbers(h.ledger)).toEqual([1, 0, 1]);
  });
}

function racingCases({ check, checkShared }: Cases): void {
  /** Calls with one key or with several, in another order each, from all handles at once. */
  const oneRecordEach = async (ledgers: readonly Ledger[]): Promise<void> => {
    for (let round = 0; round < 5; round += 1) {
      const calls = Array.from({ length: 24 }, (_, at) => {
        const keys = ["x", "y", "z"].map((key) => `${key}${String(round)}`);
        const jobs = (at % 2 === 0 ? keys : keys.toReversed()).map((key) => keyed(key));
        return at % 3 === 0 ? jobs : [present(jobs[0]), newJob()];
      });
      const answers = await Promise.all(
        calls.map((jobs, at) => present(ledgers[at % ledgers.length]).submit(jobs, ROOMY)),
      );
      const ids = new Map<string, Set<string>>();
      let accepted = 0;
      for (const outcome of answers.flat()) {
        if (outcome.kind === "full") throw new Error("a roomy bound refused a job");
        const { idempotencyKey: key, jobId } = outcome.job;
        if (key === null) continue;
        expect(["accepted", "repeated"]).toContain(outcome.kind);
        if (outcome.kind === "accepted") accepted += 1;
        ids.set(key, (ids.get(key) ?? new Set()).add(jobId));
      }
      expect([accepted, ids.size]).toEqual([3, 3]);
      expect([...ids.values()].map((named) => named.size)).toEqual([1, 1, 1]);
    }
    // Of each round: three keys, and sixteen jobs without one.
    expect(await numbers(present(ledgers[0]))).toEqual([5 * 19, 0, 5 * 19]);
  };
  check("F39: the same keys in parallel calls: one record each, and everyone gets it", (h) =>
    oneRecordEach([h.ledger]),
  );
  checkShared(
    "F39: the same keys in parallel calls: one record each, and everyone gets it",
    async (h) => oneRecordEach([h.ledger, await h.second()]),
  );

  const boundHolds = async (ledgers: readonly Ledger[]): Promise<void> => {
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, at) =>
        present(ledgers[at % ledgers.length]).submit([keyed(`k${String(at % 10)}`), newJob()], {
          maxDepth: 7,
        }),
      ),
    );
    const accepted = answers.flat().filter((one) => one.kind === "accepted");
    expect(accepted).toHaveLength(7);
    expect(await numbers(present(ledgers[0]))).toEqual([7, 0, 7]);
  };
  check("parallel calls with keys get exactly the bound", (h) => boundHolds([h.ledger, h.ledger]));
  checkShared("parallel calls with keys get exactly the bound", async (h) =>
    boundHolds([h.ledger, await h.second()]),
  );
}

function evictedCases({ check, checkShared }: Cases): void {
  const ALL = { ttlMs: 1_000_000, keep: 0, chunk: 100 };
  check("the key goes with its record, and can be used again", async (h) => {
    const { job } = await jobIn(h.ledger, "succeeded", {
      idempotency: { key: "k", fingerprint: "f" },
    });
    expect(await submitOne(h.ledger, keyed("k"))).toEqual({ kind: "repeated", job });
    expect(await h.ledger.evict(ALL)).toBe(1);
    const next = keyed("k", "other");
    expect(await submitOne(h.ledger, next)).toMatchObject({
      kind: "accepted",
      job: { jobId: next.jobId },
    });
  });

  /** A key of which jobs are submitted, ended and forgotten as fast as it goes. */
  const handsChange = async (ours: Ledger, theirs: Ledger): Promise<void> => {
    let accepted = 0;
    let evicted = 0;
    let busy = true;
    const submitter = async (ledger: Ledger): Promise<void> => {
      for (let round = 0; round < 40; round += 1) {
        const outcome = await submitOne(ledger, keyed("k"));
        expect(["accepted", "repeated"]).toContain(outcome.kind);
        if (outcome.kind === "accepted") accepted += 1;
        if (outcome.kind === "accepted") await ledger.cancel([outcome.job.jobId]);
      }
    };
    const forgetter = async (): Promise<void> => {
      while (busy) evicted += await theirs.evict(ALL);
    };
    const forgetting = forgetter();
    await Promise.all([submitter(ours), submitter(theirs), submitter(ours)]);
    busy = false;
    await forgetting;
    const [queued, running, total] = await numbers(ours);
    expect([queued, running, total]).toEqual([0, 0, accepted - evicted]);
    expect(total).toBeLessThanOrEqual(1);
    expect(evicted).toBeGreaterThan(0);
  };
  check("a key whose job is forgotten at the same moment names the old job or the new one", (h) =>
    handsChange(h.ledger, h.ledger),
  );
  checkShared(
    "a key whose job is forgotten at the same moment names the old job or the new one",
    async (h) => handsChange(h.ledger, await h.second()),
  );

  check("what a repeated job is may have been forgotten since: it is unknown then", async (h) => {
    const { job } = await jobIn(h.ledger, "cancelled", {
      idempotency: { key: "k", fingerprint: "f" },
    });
    expect(isTerminal(job.status)).toBe(true);
    await h.ledger.evict(ALL);
    expect(await look(h.ledger, job.jobId)).toBeNull();
  });
}

function textCases({ check }: Cases): void {
  const HOSTILE = `k\0\ud83d'; DROP TABLE async_jobs; -- 漢字 "q" {a,b} \\`;
  const CLEANED = `k\ufffd\ufffd'; DROP TABLE async_jobs; -- 漢字 "q" {a,b} \\`;
  check("F19: hostile keys and fingerprints are cleaned alike, stored and compared", async (h) => {
    const job = await acceptOne(h.ledger, keyed(HOSTILE, HOSTILE));
    expect(job.idempotencyKey).toBe(CLEANED);
    for (const [key, fingerprint] of [
      [HOSTILE, HOSTILE],
      [CLEANED, CLEANED],
    ] as const)
      expect(await submitOne(h.ledger, keyed(key, fingerprint))).toEqual({ kind: "repeated", job });
    expect((await submitOne(h.ledger, keyed(CLEANED, "f"))).kind).toBe("conflict");
  });

  check("keys differ by every character: case, blanks, accents, length", async (h) => {
    const keys = [
      "",
      " ",
      "k",
      "K",
      "k ",
      "ké",
      "ke\u0301",
      "null",
      "{}",
      "NULL",
      "k,k",
      "x".repeat(255),
    ];
    const outcomes = await h.ledger.submit(
      keys.map((key) => keyed(key)),
      ROOMY,
    );
    expect(outcomes.map((one) => one.kind)).toEqual(keys.map(() => "accepted"));
    const again = await h.ledger.submit(
      keys.map((key) => keyed(key)),
      FULL,
    );
    expect(again.map((one) => one.kind === "repeated" && one.job.idempotencyKey)).toEqual(keys);
  });
}
