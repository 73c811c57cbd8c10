/**
 * What the engine asks of its ledger, whichever it is: calls by verb, on a virtual clock and so exact.
 * What a call costs on each store: sqlite.test.ts and postgres.test.ts.
 */
import { expect, test } from "vitest";
import { openMemoryLedger } from "../../src/ledger/memory/memory-ledger.js";
import { Connection, submitted, withRig, type Rig } from "../engine-rig.js";
import { settled, VirtualClock } from "../virtual-clock.js";
import { cost } from "./cost.js";

const zero = { name: "zero", run: () => null };

interface CountedRig extends Rig {
  /** Calls since the last question. */
  readonly spent: () => Record<string, number>;
}

/** An engine that has started, and done what it does at its start. */
async function withCountedRig(
  options: Omit<Parameters<typeof withRig>[0], "clock" | "ledger" | "tasks">,
  use: (rig: CountedRig) => Promise<void>,
): Promise<void> {
  const clock = new VirtualClock();
  const { ledger, calls } = new Connection(openMemoryLedger({ clock }));
  let before: Record<string, number> = {};
  const spent = (): Record<string, number> => {
    const made = Object.entries(calls).map(
      ([verb, count]) => [verb, count - (before[verb] ?? 0)] as const,
    );
    before = { ...calls };
    return Object.fromEntries(made.filter(([, count]) => count > 0));
  };
  await withRig({ ...options, clock, ledger, tasks: [zero] }, async (rig) => {
    await clock.advance(0);
    spent();
    await use({ ...rig, spent });
  });
}

test("100 concurrent jobs with a wait each: one list for each step of a life", () =>
  withCountedRig({}, async (rig) => {
    const jobIds = await Promise.all(Array.from({ length: 100 }, () => submitted(rig, "zero")));
    const jobs = await Promise.all(
      jobIds.map((jobId) => rig.engine.wait(jobId, { timeoutMs: 60_000, until: "end" })),
    );
    await settled();
    expect(jobs.filter((job) => job?.status === "succeeded")).toHaveLength(100);
    expect(
      rig.spent(),
      cost("calls for 100 jobs", "src/engine/batcher.ts, worker.ts, settler.ts and waits.ts"),
      // One claim takes all, since runs are tiny, and the next finds nothing; all waits share one look,
      // and by then all have ended.
    ).toEqual({ submit: 1, claim: 2, settle: 1, get: 1 });
  }));

test("a hundred submits without a worker are one call", () =>
  withCountedRig({ worker: false }, async (rig) => {
    await Promise.all(Array.from({ length: 100 }, () => submitted(rig, "zero")));
    expect(rig.spent(), cost("calls for 100 submits", "src/engine/admission.ts")).toEqual({
      submit: 1,
    });
  }));

/** A round of maintenance each 10 s: who is there, who is lost, what is old, how many are left. */
const MAINTENANCE = { workers: 6, rescue: 6, evict: 6, counts: 6 };
/** Besides: a beat with each round, jobs that nobody can run, and a claim per poll interval, which is a second. */
const OF_A_WORKER = { heartbeat: 6, reject: 6, claim: 60 };

test.each([
  ["server", false, 1, MAINTENANCE],
  ["server", false, 64, MAINTENANCE],
  ["worker", true, 1, { ...MAINTENANCE, ...OF_A_WORKER }],
  ["worker", true, 64, { ...MAINTENANCE, ...OF_A_WORKER }],
])("an idle minute of a %s, worker: %s, with %i slots", (_, worker, maxWorkers, calls) =>
  withCountedRig({ worker, settings: { maxWorkers, asyncTimeoutMs: 300_000 } }, async (rig) => {
    // Before it has run for `worker_timeout` a worker judges nobody.
    await rig.clock.advance(60_000);
    rig.spent();
    await rig.clock.advance(60_000);
    expect(
      rig.spent(),
      cost("calls in an idle minute", "src/engine/worker.ts, heartbeat.ts and sweeper.ts"),
    ).toEqual(calls);
  }),
);

test("a full table costs a sweep for every tenth submit, not one for each", () => {
  const settings = { asyncMaxCompleted: 1_000, asyncMaxQueue: 5_000 };
  return withCountedRig({ settings }, async (rig) => {
    for (let n = 0; n < 1_500; n += 1) await submitted(rig, "zero");
    rig.spent();
    for (let n = 0; n < 200; n += 1) await submitted(rig, "zero");
    await settled();
    // A hundredth of what is kept may be beyond the bound.
    expect(
      rig.spent(),
      cost("sweeps while the table is full", "src/engine/retention.ts"),
    ).toMatchObject({ submit: 200, evict: 20, counts: 20 });
  });
});
