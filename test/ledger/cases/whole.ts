/** A whole call records all of its new jobs or none. */
import { expect } from "vitest";
import type { NewJob } from "../../../src/job/job.js";
import type { Ledger, SubmitOutcome } from "../../../src/ledger/ledger.js";
import { accept, acceptOne, newJob, newJobs, numbers, present, statusesOf } from "../acts.js";
import type { Cases } from "../harness.js";
import { keyed, told } from "./idempotency.js";

const whole = (maxDepth: number): { maxDepth: number; whole: true } => ({ maxDepth, whole: true });

function kinds(outcomes: readonly SubmitOutcome[]): string[] {
  return outcomes.map((one) => one.kind);
}

async function expectNone(ledger: Ledger, jobs: readonly NewJob[]): Promise<void> {
  expect(
    await statusesOf(
      ledger,
      jobs.map((job) => job.jobId),
    ),
  ).toEqual(jobs.map(() => null));
}

export function wholeCases({ check, checkShared }: Cases): void {
  check("all where there is just room for all, none where one is missing", async (h) => {
    await acceptOne(h.ledger);
    const jobs = newJobs(4);
    expect(await h.ledger.submit(jobs, whole(4))).toEqual(
      jobs.map(() => ({ kind: "full", depth: 1 })),
    );
    await expectNone(h.ledger, jobs);
    expect(kinds(await h.ledger.submit(jobs, whole(5)))).toEqual(jobs.map(() => "accepted"));
    expect(await numbers(h.ledger)).toEqual([5, 0, 5]);
  });

  check("of nothing there is all; and a bound of nothing admits none", async (h) => {
    expect(await h.ledger.submit([], whole(0))).toEqual([]);
    for (const maxDepth of [0, -1])
      expect(kinds(await h.ledger.submit(newJobs(2), whole(maxDepth)))).toEqual(["full", "full"]);
    expect(await numbers(h.ledger)).toEqual([0, 0, 0]);
  });

  check("repeated ones count as admitted and take no room", async (h) => {
    const [one, two] = await accept(h.ledger, [keyed("one"), keyed("two")]);
    const jobs = [keyed("one"), newJob(), keyed("two"), keyed("three"), keyed("three")];
    expect(told(await h.ledger.submit(jobs, whole(3)))).toEqual([
      `repeated ${present(one).jobId}`,
      "full",
      `repeated ${present(two).jobId}`,
      "full",
      "full",
    ]);
    await expectNone(h.ledger, jobs);
    expect(told(await h.ledger.submit(jobs, whole(4)))).toEqual([
      `repeated ${present(one).jobId}`,
      `accepted ${present(jobs[1]).jobId}`,
      `repeated ${present(two).jobId}`,
      `accepted ${present(jobs[3]).jobId}`,
      `repeated ${present(jobs[3]).jobId}`,
    ]);
    expect(kinds(await h.ledger.submit([keyed("one"), keyed("two")], whole(0)))).toEqual([
      "repeated",
      "repeated",
    ]);
    expect(await numbers(h.ledger)).toEqual([4, 0, 4]);
  });

  check("one conflict with a record refuses all", async (h) => {
    const old = await acceptOne(h.ledger, keyed("old"));
    const jobs = [newJob(), keyed("old", "other"), keyed("new"), keyed("old")];
    expect(told(await h.ledger.submit(jobs, whole(100)))).toEqual([
      "full",
      `conflict ${old.jobId}`,
      "full",
      `repeated ${old.jobId}`,
    ]);
    await expectNone(h.ledger, jobs);
    expect(await numbers(h.ledger)).toEqual([1, 0, 1]);
    expect(kinds(await h.ledger.submit(jobs, { maxDepth: 100 }))).toEqual([
      "accepted",
      "conflict",
      "accepted",
      "repeated",
    ]);
  });

  check("one conflict within the call refuses all", async (h) => {
    const jobs = [keyed("new"), newJob(), keyed("new", "other"), keyed("new")];
    expect(told(await h.ledger.submit(jobs, whole(100)))).toEqual([
      "full",
      "full",
      `conflict ${present(jobs[0]).jobId}`,
      "full",
    ]);
    await expectNone(h.ledger, jobs);
    expect(await numbers(h.ledger)).toEqual([0, 0, 0]);
  });

  const racing = async (ledgers: readonly Ledger[]): Promise<void> => {
    const calls = Array.from({ length: 30 }, (_, at) => newJobs((at % 3) + 2));
    const answers = await Promise.all(
      calls.map((jobs, at) => present(ledgers[at % ledgers.length]).submit(jobs, whole(16))),
    );
    const admitted = answers.map(kinds).filter((kind) => kind.includes("accepted"));
    for (const kind of admitted) expect(new Set(kind)).toEqual(new Set(["accepted"]));
    const [queued] = await numbers(present(ledgers[0]));
    expect(queued).toBe(admitted.flat().length);
    expect(queued).toBeLessThanOrEqual(16);
    expect(queued).toBeGreaterThanOrEqual(15);
  };
  check("racing calls are whole, and never exceed the bound", (h) => racing([h.ledger, h.ledger]));
  checkShared("racing calls are whole, and never exceed the bound", async (h) =>
    racing([h.ledger, await h.second()]),
  );
}
