import { describe, expect, test } from "vitest";
import { createRig, HeldTask, stopped, withRig, type Rig } from "../../test/engine-rig.js";
import { settled } from "../../test/virtual-clock.js";
import type { SubmitRequest, SubmitResult } from "./api.js";

const submit = (
  { engine }: Pick<Rig, "engine">,
  idempotencyKey: string,
  more: Partial<SubmitRequest> = {},
): Promise<SubmitResult> =>
  engine.submit({ task: "held", input: { n: 1 }, idempotencyKey, ...more });

const idOf = (result: SubmitResult): string => {
  if (result.kind !== "accepted") throw new Error(result.kind);
  return result.job.jobId;
};

describe("a submit with a key", () => {
  test("F39: in parallel with its like makes one job, which all get, and counts once", async () => {
    const held = new HeldTask("held");
    await withRig({ tasks: [held.options] }, async (rig) => {
      const results = await Promise.all(Array.from({ length: 50 }, () => submit(rig, "k")));
      expect(new Set(results.map(idOf)).size).toBe(1);
      const first = results.filter((result) => result.kind === "accepted" && !result.repeated);
      expect(first.length).toBe(1);
      await settled();
      expect(held.calls.length).toBe(1);
      expect(rig.seen.filter((line) => line.startsWith("accepted"))).toEqual(["accepted held"]);
      expect(await rig.engine.counts()).toMatchObject({ total: 1 });
    });
  });

  test("F4: is answered with its job when that has ended, and beyond the bound", async () => {
    const held = new HeldTask("held");
    await withRig({ tasks: [held.options], settings: { asyncMaxQueue: 1 } }, async (rig) => {
      const jobId = idOf(await submit(rig, "k"));
      // Keys in another order, and other options, ask for the same.
      const again = await submit(rig, "k", { priority: 5 });
      expect(again).toMatchObject({ kind: "accepted", repeated: true, job: { jobId } });
      expect(await submit(rig, "other")).toMatchObject({ kind: "full" });
      await settled();
      held.call(0).succeed(1);
      await settled();
      expect(await submit(rig, "k")).toMatchObject({
        repeated: true,
        job: { jobId, status: "succeeded", idempotencyKey: "k" },
      });
    });
  });

  test("finds its job also where nothing is admitted any more", async () => {
    const options = { tasks: [new HeldTask("held").options], worker: false };
    const before = createRig(options);
    const jobId = idOf(await submit(before, "k"));
    await stopped(before);
    const { ledger, clock } = before;
    const closed = createRig({ ...options, ledger, clock, settings: { asyncMaxQueue: 0 } });
    expect(await submit(closed, "k")).toMatchObject({ repeated: true, job: { jobId } });
    expect(await submit(closed, "new")).toMatchObject({ kind: "full", limit: 0 });
    expect(await closed.engine.submit({ task: "held", input: 1 })).toMatchObject({ kind: "full" });
    await stopped(closed);
  });

  test("is refused for another input or task, with the job that has the key", async () => {
    const tasks = [new HeldTask("held").options, new HeldTask("other").options];
    await withRig({ tasks }, async (rig) => {
      const jobId = idOf(await submit(rig, "k"));
      const conflict = { kind: "key_conflict", key: "k", jobId };
      expect(await submit(rig, "k", { input: { n: 2 } })).toEqual(conflict);
      expect(await submit(rig, "k", { task: "other" })).toEqual(conflict);
      expect(await rig.engine.counts()).toMatchObject({ total: 1 });
    });
  });

  test.each(["", "k".repeat(256), "a\0", "\ud800"])("is refused for the key %j", async (key) => {
    await withRig({ tasks: [new HeldTask("held").options] }, async (rig) => {
      expect(await submit(rig, key)).toMatchObject({
        kind: "invalid",
        issues: [{ path: "idempotencyKey" }],
      });
    });
  });
});

describe("an earliest start", () => {
  test("is a time of the caller's; what is past starts at once, in its turn", async () => {
    const held = new HeldTask("held");
    await withRig({ tasks: [held.options], settings: { maxWorkers: 1 } }, async (rig) => {
      const { engine, clock } = rig;
      const nowMs = clock.nowMs();
      const due = async (n: number, runAtMs?: number): Promise<void> => {
        await engine.submit({
          task: "held",
          input: n,
          ...(runAtMs === undefined ? {} : { runAtMs }),
        });
      };
      await due(1, nowMs + 5_000);
      await due(2);
      await due(3, 0);
      await settled();
      expect(held.calls.map(({ input }) => input)).toEqual([2]);
      held.call(0).succeed(1);
      await settled();
      held.call(1).succeed(1);
      await clock.advance(5_500);
      expect(held.calls.map(({ input }) => input)).toEqual([2, 3, 1]);
    });
  });

  test("is refused beyond a year, beside a delay, and where it is no time", async () => {
    await withRig({ tasks: [new HeldTask("held").options] }, async ({ engine, clock }) => {
      const nowMs = clock.nowMs();
      const options: Partial<SubmitRequest>[] = [
        { runAtMs: nowMs + 366 * 86_400_000 },
        { runAtMs: -1 },
        { runAtMs: Number.NaN },
        { runAtMs: nowMs, delayMs: 5 },
      ];
      for (const option of options)
        expect(await engine.submit({ task: "held", input: 1, ...option })).toMatchObject({
          kind: "invalid",
          issues: [{ path: "runAtMs" }],
        });
    });
  });
});

describe("many at once", () => {
  const many = (count: number): SubmitRequest[] =>
    Array.from({ length: count }, (_, n) => ({ task: "held", input: { n } }));

  test("are recorded in order, or none of them, also beside other submitters", async () => {
    const rig = createRig({
      tasks: [new HeldTask("held").options],
      settings: { asyncMaxQueue: 10 },
      worker: false,
    });
    const { engine } = rig;
    const outcomes = await Promise.all(Array.from({ length: 4 }, () => engine.submitMany(many(4))));
    expect(outcomes.map(({ kind }) => kind)).toEqual([
      "accepted",
      "accepted",
      "refused",
      "refused",
    ]);
    expect(outcomes[2]).toMatchObject({ index: 0, refusal: { kind: "full", limit: 10 } });
    expect(await engine.counts()).toMatchObject({ queued: 8 });
    const [first] = outcomes;
    const ids = first?.kind === "accepted" ? first.jobs.map(({ job }) => job.jobId) : [];
    expect(ids).toEqual([...ids].sort());
    expect(await engine.submitMany([])).toEqual({ kind: "accepted", jobs: [] });
    await stopped(rig);
    expect(await engine.submitMany(many(1))).toMatchObject({ refusal: { kind: "not_ready" } });
  });

  test("are refused for one that can't be, which is named by its place", async () => {
    const tasks = [new HeldTask("held").options];
    await withRig({ tasks, settings: { asyncMaxQueue: 4 } }, async (rig) => {
      const { engine } = rig;
      const jobId = idOf(await submit(rig, "k"));
      const requests = many(3);
      const with2 = (request: Partial<SubmitRequest>): SubmitRequest[] =>
        requests.map((one, index) => (index === 2 ? { ...one, ...request } : one));
      expect(await engine.submitMany(with2({ task: "nope" }))).toMatchObject({
        kind: "refused",
        index: 2,
        refusal: { kind: "unknown_task" },
      });
      expect(await engine.submitMany(with2({ priority: 0.5 }))).toMatchObject({
        index: 2,
        refusal: { kind: "invalid" },
      });
      expect(await engine.submitMany(with2({ idempotencyKey: "k" }))).toEqual({
        kind: "refused",
        index: 2,
        refusal: { kind: "key_conflict", key: "k", jobId },
      });
      const twice = requests.map((one) => ({ ...one, idempotencyKey: "new" }));
      expect(await engine.submitMany(twice)).toMatchObject({
        refusal: { kind: "invalid", issues: [{ path: "idempotencyKey" }] },
      });
      expect(await engine.submitMany(many(5))).toMatchObject({
        refusal: {
          kind: "invalid",
          issues: [{ message: expect.stringContaining("(4)") as string }],
        },
      });
      expect(await engine.counts()).toMatchObject({ total: 1 });
      const repeated = await engine.submitMany(with2({ idempotencyKey: "k", input: { n: 1 } }));
      expect(repeated).toMatchObject({
        kind: "accepted",
        jobs: [{ repeated: false }, { repeated: false }, { repeated: true, job: { jobId } }],
      });
    });
  });
});
