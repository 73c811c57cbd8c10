import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { PLAN_TASKS } from "../job/payload.js";
import type { Ledger } from "../ledger/ledger.js";
import { openSqliteLedger } from "../ledger/sqlite/sqlite-ledger.js";
import { silentLogger } from "../runtime/logger.js";
import { createRig, HeldTask, stopped, submitted, withRig } from "../../test/engine-rig.js";
import { acceptOne } from "../../test/ledger/acts.js";
import { FAST_FOLDER } from "../../test/ledger/sqlite-factory.js";
import { settled, VirtualClock } from "../../test/virtual-clock.js";

const UNKNOWN_ID = "01JZZZZZZZZZZZZZZZZZZZZZZZ";
/** By the ledger's hints alone: the clock stands still. */
const UNTIL_END = { timeoutMs: 60_000, until: "end" } as const;

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** Unlike the one in memory it keeps what ran. */
async function onDisk(): Promise<{ readonly ledger: Ledger; readonly clock: VirtualClock }> {
  const folder = await mkdtemp(join(FAST_FOLDER, "jobtable-retry-"));
  const clock = new VirtualClock();
  const path = join(folder, "jobs.db");
  const ledger = await openSqliteLedger({ path, clock, logger: silentLogger });
  closers.push(async () => {
    await ledger.close();
    await rm(folder, { recursive: true });
  });
  return { ledger, clock };
}

describe("a retry by a user", () => {
  test("F24: of a cancelled job is a new one that runs, with the payload and the options of the old", async () => {
    const echo = { name: "echo", run: (input: unknown) => input };
    await withRig({ ...(await onDisk()), tasks: [echo] }, async ({ engine }) => {
      const options = { priority: 7, maxAttempts: 3, timeoutMs: 60_000, requestId: "r1" };
      const first = await engine.submit({
        task: "echo",
        input: { n: 1 },
        delayMs: 1_000,
        ...options,
      });
      const old = first.kind === "accepted" ? first.job.jobId : "";
      expect(await engine.cancel(old)).toMatchObject({ kind: "cancelled" });
      const again = await engine.retry(old);
      if (again.kind !== "accepted") throw new Error(again.kind);
      expect(again.job).toMatchObject({ ...options, status: "queued", attempt: 0, task: "echo" });
      const { jobId } = again.job;
      expect(jobId).not.toBe(old);
      expect(await engine.wait(jobId, UNTIL_END)).toMatchObject({ status: "succeeded" });
      expect(await engine.result(jobId)).toMatchObject({ resultJson: '{"n":1}' });
      expect(await engine.get(old)).toMatchObject({ status: "cancelled" });
    });
  });

  test("with a key, sent again, is answered with the job that it made", async () => {
    const held = new HeldTask("held");
    const settings = { asyncMaxQueue: 1 };
    const options = { ...(await onDisk()), tasks: [held.options], settings, worker: false };
    await withRig(options, async (rig) => {
      const { engine, seen } = rig;
      const old = await submitted(rig, "held", {}, { n: 1 });
      await engine.cancel(old);
      const [first, ...others] = await Promise.all(
        Array.from({ length: 5 }, () => engine.retry(old, { idempotencyKey: "k" })),
      );
      if (first?.kind !== "accepted") throw new Error(first?.kind);
      const { jobId } = first.job;
      expect(jobId).not.toBe(old);
      for (const other of others)
        expect(other).toMatchObject({ kind: "accepted", repeated: true, job: { jobId } });
      expect(first).toMatchObject({ repeated: false, job: { idempotencyKey: "k" } });
      expect(seen).toEqual(["accepted held", "accepted held"]);
      // Without the key, or with another one, it would be one more.
      expect(await engine.retry(old, { idempotencyKey: "l" })).toMatchObject({ kind: "full" });
      await engine.cancel(jobId);
      const again = await engine.retry(old, { idempotencyKey: "k" });
      expect(again).toMatchObject({ repeated: true, job: { jobId, status: "cancelled" } });
    });
  });

  test("is refused where its key is none, or belongs to a job of another input", async () => {
    const options = { ...(await onDisk()), tasks: [new HeldTask("held").options], worker: false };
    await withRig(options, async (rig) => {
      const { engine } = rig;
      const key = { idempotencyKey: "k" };
      const first = await engine.submit({ task: "held", input: { n: 1 }, ...key });
      const jobId = first.kind === "accepted" ? first.job.jobId : "";
      const old = await submitted(rig, "held", {}, { n: 2 });
      await engine.cancel(old);
      expect(await engine.retry(old, key)).toEqual({ kind: "key_conflict", key: "k", jobId });
      expect(await engine.retry(old, { idempotencyKey: "" })).toMatchObject({
        kind: "invalid",
        issues: [{ path: "idempotencyKey" }],
      });
      // Its own key names the old job itself.
      await engine.cancel(jobId);
      expect(await engine.retry(jobId, key)).toMatchObject({ repeated: true, job: { jobId } });
    });
  });

  test("with a key takes a payload that nobody can read, as it does without", async () => {
    const { ledger, clock } = await onDisk();
    const job = { jobId: UNKNOWN_ID, task: "t", schemaVersion: 1, payloadJson: "not JSON" };
    await ledger.submit([job], { maxDepth: 10 });
    await ledger.cancel([UNKNOWN_ID]);
    await withRig({ ledger, clock, worker: false }, async ({ engine }) => {
      const first = await engine.retry(UNKNOWN_ID, { idempotencyKey: "k" });
      expect(first).toMatchObject({ kind: "accepted", repeated: false });
      const again = await engine.retry(UNKNOWN_ID, { idempotencyKey: "k" });
      expect(again).toMatchObject({ kind: "accepted", repeated: true });
    });
  });

  test("says why it can't be", async () => {
    const held = new HeldTask("held");
    await withRig({ tasks: [held.options] }, async (rig) => {
      const { engine } = rig;
      expect(await engine.retry(UNKNOWN_ID)).toEqual({ kind: "unknown" });
      const ran = await submitted(rig, "held");
      await settled();
      expect(await engine.retry(ran)).toMatchObject({
        kind: "not_finished",
        job: { status: "running" },
      });
      held.call(0).succeed(1);
      await settled();
      expect(await engine.retry(ran)).toMatchObject({
        kind: "payload_gone",
        job: { status: "succeeded" },
      });
    });
  });

  test("of a plan's job is refused, whatever its end: the plan is run anew instead", async () => {
    const rig = createRig({ worker: false });
    const { engine, ledger } = rig;
    const job = { planId: UNKNOWN_ID, phase: "apply", task: PLAN_TASKS.apply } as const;
    const { jobId } = await acceptOne(ledger, job);
    const ofPlan = { kind: "of_plan", job: { jobId, ...job } };
    expect(await engine.retry(jobId)).toMatchObject(ofPlan);
    await engine.cancel(jobId);
    expect(await engine.retry(jobId)).toMatchObject(ofPlan);
    expect(await ledger.counts()).toMatchObject({ total: 1 });
    await stopped(rig);
  });

  test("of a job that is forgotten meanwhile finds none", async () => {
    const { ledger, clock } = await onDisk();
    const payload = ledger.payload.bind(ledger);
    ledger.payload = async (jobId) => {
      await ledger.evict({ ttlMs: -1, keep: 0, chunk: 10 });
      return payload(jobId);
    };
    const tasks = [new HeldTask("held").options];
    await withRig({ ledger, clock, tasks, worker: false }, async (rig) => {
      const old = await submitted(rig, "held");
      await rig.engine.cancel(old);
      expect(await rig.engine.retry(old)).toEqual({ kind: "unknown" });
    });
  });

  test("is held to the bound, and refused while stopping", async () => {
    const rig = createRig({
      ...(await onDisk()),
      tasks: [new HeldTask("held").options],
      settings: { asyncMaxQueue: 1 },
      worker: false,
    });
    const { engine, seen } = rig;
    const old = await submitted(rig, "held");
    await engine.cancel(old);
    expect(await engine.retry(old)).toMatchObject({ kind: "accepted" });
    expect(await engine.retry(old)).toEqual({ kind: "full", limit: 1, retryAfterS: 1 });
    expect(seen).toEqual(["accepted held", "accepted held", "refused held"]);
    await stopped(rig);
    expect(await engine.retry(old)).toEqual({ kind: "not_ready", reason: "shutting down" });
  });
});
