/**
 * What the ledger on PostgreSQL sends for its callers, counted by a proxy: statements by name, each of
 * which is one round trip and one transaction with one commit (a BEGIN would be among them).
 */
import { afterAll, beforeAll, beforeEach, expect, inject, test } from "vitest";
import type { TaskOptions } from "../../src/task/task.js";
import { createRig, stopped, submitted, type Rig } from "../engine-rig.js";
import {
  accept,
  beat,
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
import { CountedPostgres } from "./counted-postgres.js";

const LEDGER = "src/ledger/postgres/postgres-ledger.ts and the file of the verb beside it";

let counted: CountedPostgres;

beforeAll(async () => {
  counted = await CountedPostgres.open(inject("postgresUrl"));
});
beforeEach(async () => {
  // Ids begin with the time, so that no two tests make the same; and what is owed goes out.
  await counted.clock.advance(100);
  await counted.quiet();
  counted.spent();
});
afterAll(() => counted.close());

test.each([1, 100])("the life of %i in one list is three statements", async (jobs) => {
  const { ledger } = counted;
  await accept(ledger, newJobs(jobs));
  const claimed = await claim(ledger, jobs);
  await ledger.settle(claimed.map(({ job }) => ({ ...claimOf(job), end: SUCCEED })));
  expect(counted.spent(), cost("statements of a life", LEDGER)).toEqual({
    submit: 1,
    claim: 1,
    settle: 1,
  });
});

test("submits of one moment tell others once along, and once for all that followed", async () => {
  await Promise.all(newJobs(100).map((job) => counted.ledger.submit([job], ROOMY)));
  await counted.clock.advance(1_000);
  await counted.quiet();
  expect(
    counted.spent(),
    cost("statements of 100 submits", "src/ledger/postgres/work-signal.ts"),
  ).toEqual({ submit: 100, notify: 1 });
});

/** An engine that has started and swept, which its first submit sets off. */
async function withEngine(
  given: { readonly worker: boolean; readonly task: string },
  use: (rig: Rig) => Promise<void>,
): Promise<void> {
  const task: TaskOptions & { readonly name: string } = { name: given.task, run: () => null };
  const { ledger, clock } = counted;
  const rig = createRig({ ledger, clock, worker: given.worker, tasks: [task] });
  await rig.engine.start();
  try {
    await submitted(rig, given.task);
    await counted.quiet();
    counted.spent();
    await use(rig);
  } finally {
    await stopped(rig);
  }
}

test("100 concurrent submits through the engine are one statement", () =>
  withEngine({ worker: false, task: "kept" }, async (rig) => {
    await Promise.all(Array.from({ length: 100 }, () => submitted(rig, "kept")));
    expect(
      counted.spent(),
      cost("statements of 100 submits", "src/engine/batcher.ts and admission.ts"),
    ).toEqual({ submit: 1 });
  }));

/** How calls fall into lists follows the machine: 6 were seen in five runs. One for each job and step would be 300. */
const MOST_STATEMENTS = 20;

test("100 concurrent jobs with a wait each, through an engine that runs them", () =>
  withEngine({ worker: true, task: "zero" }, async (rig) => {
    const jobIds = await Promise.all(Array.from({ length: 100 }, () => submitted(rig, "zero")));
    await Promise.all(
      jobIds.map((jobId) => rig.engine.wait(jobId, { timeoutMs: 60_000, until: "end" })),
    );
    const spent = counted.spent();
    const sum = Object.values(spent).reduce((all, count) => all + count, 0);
    const what = `100 jobs took ${String(sum)} statements, ${JSON.stringify(spent)}`;
    const where = "src/engine/batcher.ts, worker.ts, settler.ts and waits.ts";
    expect(sum, cost(what, where)).toBeLessThanOrEqual(MOST_STATEMENTS);
    expect(spent["submit"], cost(what, where)).toBe(1);
  }));

test("an idle minute of the ledger itself is a probe each ten seconds", async () => {
  const idle = await CountedPostgres.open(inject("postgresUrl"));
  try {
    for (let probes = 1; probes <= 6; probes += 1) {
      await idle.clock.advance(10_000);
      await idle.heard(probes);
    }
    expect(
      idle.spent(),
      cost("statements of an idle minute", "src/ledger/postgres/listener.ts and changes.ts"),
    ).toEqual({ notify: 6 });
  } finally {
    await idle.close();
  }
});

test("what an engine with nothing to do asks for is one statement each", async () => {
  const { ledger } = counted;
  await ledger.claim({ workerId: WORKER, tasks: ["a", "b"], limit: 4 });
  await ledger.heartbeat(beat(), []);
  await ledger.workers();
  await ledger.rescue(PATIENT);
  await ledger.reject({ workerId: WORKER, graceMs: HOUR_MS, workerTimeoutMs: HOUR_MS, chunk: 500 });
  await ledger.evict({ ttlMs: HOUR_MS, keep: 1_000, chunk: 500 });
  await ledger.counts();
  expect(counted.spent(), cost("statements of idle calls", LEDGER)).toEqual({
    claim: 1,
    heartbeat: 1,
    workers: 1,
    rescue: 1,
    reject: 1,
    evict: 1,
    counts: 1,
  });
});
