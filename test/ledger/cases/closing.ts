/** What close promises. */
import { expect } from "vitest";
import { LedgerError } from "../../../src/job/errors.js";
import type { Ledger } from "../../../src/ledger/ledger.js";
import type { PlanRecords } from "../../../src/ledger/plan-records.js";
import {
  acceptOne,
  beat,
  claim,
  newJobs,
  nextJobId,
  numbers,
  PATIENT,
  ROOMY,
  see,
  settleOne,
  SUCCEED,
} from "../acts.js";
import type { Cases } from "../harness.js";

export function closingCases({ check, checkShared }: Cases): void {
  check("close is idempotent, also when called at once", async (h) => {
    await acceptOne(h.ledger);
    await Promise.all([h.ledger.close(), h.ledger.close()]);
    await expect(h.ledger.close()).resolves.toBeUndefined();
  });

  check("later calls reject with ledger_closed", async (h) => {
    const { jobId } = await acceptOne(h.ledger);
    await h.ledger.close();
    const held = { jobId, workerId: "worker-0000000a", attempt: 1 };
    /** Every verb that answers with a promise, close apart: the compiler misses none. */
    const calls: Record<AsyncVerb, () => Promise<unknown>> = {
      submit: () => h.ledger.submit(newJobs(1), ROOMY),
      claim: () => claim(h.ledger, 1),
      settle: () => settleOne(h.ledger, held, SUCCEED),
      heartbeat: () => h.ledger.heartbeat(beat(), []),
      leave: () => h.ledger.leave("worker-0000000a"),
      cancel: () => h.ledger.cancel([jobId]),
      get: () => h.ledger.get([jobId]),
      result: () => h.ledger.result(jobId),
      payload: () => h.ledger.payload(jobId),
      list: () => h.ledger.list({ limit: 1 }),
      counts: () => h.ledger.counts(),
      workers: () => h.ledger.workers(),
      inspect: () => h.ledger.inspect({ jobTimeoutMs: 1, workerTimeoutMs: 1, chunk: 1 }),
      expire: () => h.ledger.expire({ waitLimitMs: 1, chunk: 1 }),
      reject: () => h.ledger.reject({ workerId: "w", graceMs: 1, workerTimeoutMs: 1, chunk: 1 }),
      rescue: () => h.ledger.rescue(PATIENT),
      evict: () => h.ledger.evict({ ttlMs: 1, keep: 1, chunk: 1 }),
    };
    const ofPlans = planCalls(h.ledger.plans, jobId);
    for (const [verb, call] of [...Object.entries(calls), ...Object.entries(ofPlans)]) {
      const error = await call().then(
        () => `${verb} did not reject`,
        (reason: unknown) => reason,
      );
      expect(error).toBeInstanceOf(LedgerError);
      expect(error).toMatchObject({ code: "ledger_closed" });
    }
  });

  check("listening to a closed ledger hears nothing and throws nothing", async (h) => {
    const { jobId } = await acceptOne(h.ledger);
    const leaveBefore = h.ledger.watch(jobId, () => undefined);
    await h.ledger.close();
    leaveBefore();
    h.ledger.watch(nextJobId(), () => undefined)();
    h.ledger.onWork(() => undefined)();
    await expect(h.ledger.get([jobId])).rejects.toMatchObject({ code: "ledger_closed" });
  });

  check("calls under way are finished", async (h) => {
    const pending = newJobs(50).map((job) => h.ledger.submit([job], ROOMY));
    await h.ledger.close();
    const outcomes = (await Promise.all(pending)).flat();
    expect(outcomes.map((outcome) => outcome.kind)).toEqual(outcomes.map(() => "accepted"));
    expect(outcomes).toHaveLength(50);
  });

  checkShared("what was under way at close is recorded, and the other goes on", async (h) => {
    const theirs = await h.second();
    const pending = newJobs(50).map((job) => h.ledger.submit([job], ROOMY));
    await h.ledger.close();
    await Promise.all(pending);
    expect(await numbers(theirs)).toEqual([50, 0, 50]);
    const { jobId } = await acceptOne(theirs);
    expect((await see(theirs, jobId)).status).toBe("queued");
  });
}

function planCalls(
  plans: PlanRecords,
  jobId: string,
): Record<keyof PlanRecords, () => Promise<unknown>> {
  return {
    use: () => plans.use({ planId: jobId, name: "x", workspace: "/x", file: null }),
    find: () => plans.find("x", 1),
    list: () => plans.list(1),
    begin: () => plans.begin({ jobId, planId: jobId, phase: "apply", definitionJson: "{}" }),
    drop: () => plans.drop(jobId),
    writeStep: () => plans.writeStep({ jobId, step: 0, recordJson: "{}", log: "" }),
    finish: () => plans.finish({ jobId, outcomeJson: "{}" }),
    run: () => plans.run(jobId),
    runs: () => plans.runs(jobId),
    patch: () => plans.patch(jobId),
  };
}

type AsyncVerb = {
  [V in keyof Ledger]: Ledger[V] extends (...given: never[]) => Promise<unknown> ? V : never;
}[Exclude<keyof Ledger, "close">];
