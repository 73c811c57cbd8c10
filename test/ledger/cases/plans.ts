/** What is kept of plans: their identity, their runs with steps, outcomes and patches, and what is forgotten. */
import { expect } from "vitest";
import type { Job, NewJob, Phase } from "../../../src/job/job.js";
import {
  MAX_PATCH_BYTES,
  MAX_PATH_BYTES,
  MAX_PLAN_JSON_CHARS,
  MAX_PLAN_NAME_CHARS,
  MAX_PLAN_STEPS,
  MAX_STEP_JSON_CHARS,
  MAX_STEP_LOG_CHARS,
} from "../../../src/job/limits.js";
import { encodePlanPayload, PLAN_TASKS } from "../../../src/job/payload.js";
import { ALL_STATUSES, type Status } from "../../../src/job/state.js";
import { STUCK_MESSAGE, type Ledger } from "../../../src/ledger/ledger.js";
import {
  KEPT_PLANS,
  KEPT_RUNS,
  type NewPlanRun,
  type PlanRecord,
  type PlanRecords,
  type PlanSeen,
  type RunOutcomeRecord,
  type StepRecord,
} from "../../../src/ledger/plan-records.js";
import {
  acceptOne,
  claim,
  claimOf,
  jobIn,
  MINUTE_MS,
  newJob,
  nextJobId,
  PATIENT,
  present,
  ROOMY,
  see,
  settleOne,
  SUCCEED,
  WORKER,
} from "../acts.js";
import type { Cases } from "../harness.js";
import { pages } from "../pages.js";

const LONE = "\ud83d";
const HOSTILE = `a\0b${LONE}c\udc00d "quoted" \\ \u2028 é 👩‍👩‍👧 漢字 '); DROP TABLE plans; --`;
const CLEANED = `a\ufffdb\ufffdc\ufffdd "quoted" \\ \u2028 é 👩‍👩‍👧 漢字 '); DROP TABLE plans; --`;
/** Whatever a path may hold that a text can. */
const ODD_PATH = `/tmp/ a "b" 'c' %_\\ é 漢字 👩‍👩‍👧 \n\t; DROP TABLE plans; --`;

export function planCases(cases: Cases): void {
  useCases(cases);
  findCases(cases);
  runCases(cases);
  stepCases(cases);
  outcomeCases(cases);
  forgettingCases(cases);
  refusalCases(cases);
  jobCases(cases);
}

function planOf(given: Partial<PlanSeen> = {}): PlanSeen {
  return {
    planId: nextJobId(),
    name: "tidy",
    workspace: "/repo",
    file: "/repo/tidy.yaml",
    ...given,
  };
}

function runOf(planId: string, given: Partial<NewPlanRun> = {}): NewPlanRun {
  return {
    jobId: nextJobId(),
    planId,
    phase: "execute",
    definitionJson: `{"name":"tidy"}`,
    ...given,
  };
}

function stepOf(jobId: string, step: number, given: Partial<StepRecord> = {}): StepRecord {
  return {
    jobId,
    step,
    recordJson: `{"step":${String(step)}}`,
    log: `log ${String(step)}`,
    ...given,
  };
}

/** A plan that was used, and a run of it. */
async function begun({ plans }: Ledger): Promise<NewPlanRun> {
  const { planId } = await plans.use(planOf());
  const run = runOf(planId);
  await plans.begin(run);
  return run;
}

async function idsOf(records: Promise<readonly PlanRecord[]>): Promise<string[]> {
  return (await records).map(({ planId }) => planId);
}

async function runIdsOf(plans: PlanRecords, planId: string): Promise<string[]> {
  return (await plans.runs(planId)).map(({ jobId }) => jobId);
}

function useCases({ check, checkShared }: Cases): void {
  check("a plan that is new gets the id given, and the ledger's time", async (h) => {
    const given = planOf();
    const before = await h.nowMs();
    const record = await h.ledger.plans.use(given);
    expect(record).toEqual({ ...given, createdAtMs: record.usedAtMs, usedAtMs: record.usedAtMs });
    expect(record.createdAtMs).toBeGreaterThanOrEqual(before);
    expect(record.createdAtMs).toBeLessThanOrEqual(await h.nowMs());
  });

  check(
    "name and workspace are one plan: its id stays, its file and its last use change",
    async (h) => {
      const { plans } = h.ledger;
      const first = await plans.use(planOf());
      await h.age(5 * MINUTE_MS);
      const again = await plans.use(planOf({ file: null }));
      expect(again).toMatchObject({ planId: first.planId, file: null });
      expect(again.usedAtMs - again.createdAtMs).toBeGreaterThanOrEqual(5 * MINUTE_MS);
      expect(await plans.list(10)).toEqual([again]);
      const elsewhere = await plans.use(planOf({ workspace: "/other" }));
      const otherwise = await plans.use(planOf({ name: "Tidy" }));
      const ids = [first.planId, elsewhere.planId, otherwise.planId];
      expect(new Set(ids).size).toBe(3);
      expect((await idsOf(plans.list(10))).sort()).toEqual(ids.sort());
    },
  );

  check("names and paths are kept to the letter", async (h) => {
    const { plans } = h.ledger;
    const letters = [
      planOf({ name: "é", workspace: ODD_PATH, file: ODD_PATH }),
      // The same to a reader, not to a file system.
      planOf({ name: "e\u0301", workspace: ODD_PATH, file: ODD_PATH }),
      planOf({ name: " é ", workspace: `${ODD_PATH} `, file: ODD_PATH }),
      planOf({
        name: "漢".repeat(MAX_PLAN_NAME_CHARS),
        workspace: "/漢".repeat(MAX_PATH_BYTES / 4),
        file: "/".repeat(MAX_PATH_BYTES),
      }),
    ];
    for (const given of letters) {
      const record = await plans.use(given);
      expect(record).toMatchObject(given);
      expect(await plans.find(given.planId, 10)).toEqual([record]);
      expect(await plans.find(given.name, 10)).toEqual([record]);
    }
  });

  const atOnce = async (one: PlanRecords, other: PlanRecords): Promise<void> => {
    const records = await Promise.all(
      Array.from({ length: 40 }, (_, at) => (at % 2 === 0 ? one : other).use(planOf())),
    );
    expect(new Set(records.map(({ planId }) => planId)).size).toBe(1);
    expect(await one.list(10)).toHaveLength(1);
  };
  check("many at once get one id", (h) => atOnce(h.ledger.plans, h.ledger.plans));
  checkShared("many at once get one id", async (h) =>
    atOnce(h.ledger.plans, (await h.second()).plans),
  );
}

function findCases({ check }: Cases): void {
  check("found by id and by name, all that it may mean, last used first", async (h) => {
    const { plans } = h.ledger;
    const here = await plans.use(planOf());
    await h.age(MINUTE_MS);
    const there = await plans.use(planOf({ workspace: "/there" }));
    await h.age(MINUTE_MS);
    const other = await plans.use(planOf({ name: here.planId }));
    expect(await idsOf(plans.find("tidy", 10))).toEqual([there.planId, here.planId]);
    expect(await idsOf(plans.find("tidy", 1))).toEqual([there.planId]);
    expect(await idsOf(plans.find(here.planId, 10))).toEqual([other.planId, here.planId]);
    expect(await idsOf(plans.find(there.planId, 10))).toEqual([there.planId]);
    expect(await idsOf(plans.list(10))).toEqual([other.planId, there.planId, here.planId]);
    expect(await idsOf(plans.list(2))).toEqual([other.planId, there.planId]);
    await h.age(MINUTE_MS);
    await plans.use(planOf());
    expect(await idsOf(plans.find("tidy", 10))).toEqual([here.planId, there.planId]);
    expect(await plans.list(0)).toEqual([]);
    expect(await plans.list(-1)).toEqual([]);
    expect(await plans.list(Number.NaN)).toEqual([]);
    expect(await plans.list(1e12)).toHaveLength(3);
  });

  check("what is not known is not found, whatever it looks like", async (h) => {
    const { plans } = h.ledger;
    await plans.use(planOf());
    await plans.use(planOf({ name: "\ufffd" }));
    for (const text of [
      nextJobId(),
      "",
      "TIDY",
      "tid",
      "%",
      "__proto__",
      "' OR 1=1 --",
      "\0",
      LONE,
    ]) {
      expect(await plans.find(text, 10)).toEqual([]);
      expect(await plans.runs(text)).toEqual([]);
      expect(await plans.run(text)).toBeNull();
      expect(await plans.patch(text)).toBeNull();
    }
  });
}

function runCases({ check, checkShared }: Cases): void {
  check("a run that has begun has no steps, no outcome and no patch", async (h) => {
    const { plans } = h.ledger;
    const run = await begun(h.ledger);
    const seen = present(await plans.run(run.jobId));
    expect(seen).toEqual({
      ...run,
      createdAtMs: seen.createdAtMs,
      outcomeJson: null,
      patchBytes: null,
      steps: [],
    });
    const nowMs = await h.nowMs();
    expect(seen.createdAtMs).toBeLessThanOrEqual(nowMs);
    expect(seen.createdAtMs).toBeGreaterThan(nowMs - MINUTE_MS);
    expect(await plans.patch(run.jobId)).toBeNull();
  });

  check("the runs of a plan, newest first, and none of another's", async (h) => {
    const { plans } = h.ledger;
    const { planId } = await plans.use(planOf());
    const { planId: otherId } = await plans.use(planOf({ name: "other" }));
    const runs = [
      runOf(planId),
      runOf(planId, { phase: "apply", definitionJson: `{ "as": "written" }` }),
      runOf(otherId),
      runOf(planId),
    ];
    for (const run of runs) {
      await plans.begin(run);
      await h.age(MINUTE_MS);
    }
    const seen = await plans.runs(planId);
    const newestFirst = runs.filter((run) => run.planId === planId).toReversed();
    expect(seen).toEqual(
      newestFirst.map(({ definitionJson: _, ...run }, at) => ({
        ...run,
        createdAtMs: seen[at]?.createdAtMs,
        hasEnded: false,
        patchBytes: null,
      })),
    );
    expect(await runIdsOf(plans, otherId)).toEqual([present(runs[2]).jobId]);
  });

  check("a run of an unknown plan, or a second one of a job, is refused", async (h) => {
    const { plans } = h.ledger;
    const unknown = runOf(nextJobId());
    await expect(plans.begin(unknown)).rejects.toThrow(`no plan ${unknown.planId} is known`);
    expect(await plans.run(unknown.jobId)).toBeNull();
    const run = await begun(h.ledger);
    await expect(plans.begin({ ...run, phase: "apply" })).rejects.toThrow(
      `${run.jobId} has a run already`,
    );
    expect(await plans.run(run.jobId)).toMatchObject(run);
    expect(await runIdsOf(plans, run.planId)).toEqual([run.jobId]);
  });

  check("a run is read without its steps where they are not wanted", async (h) => {
    const { plans } = h.ledger;
    const run = await begun(h.ledger);
    await plans.writeStep(stepOf(run.jobId, 0));
    await plans.finish({ jobId: run.jobId, outcomeJson: "{}", patch: new Uint8Array(3) });
    const whole = present(await plans.run(run.jobId));
    expect(whole.steps).toHaveLength(1);
    expect(await plans.run(run.jobId, { steps: true })).toEqual(whole);
    expect(await plans.run(run.jobId, { steps: false })).toEqual({ ...whole, steps: [] });
  });

  check("a run whose job was refused is dropped, one that has ended is not", async (h) => {
    const { plans } = h.ledger;
    const [dropped, ended] = [await begun(h.ledger), await begun(h.ledger)];
    await plans.writeStep(stepOf(dropped.jobId, 0));
    await plans.finish({ jobId: ended.jobId, outcomeJson: "{}" });
    for (const jobId of [dropped.jobId, ended.jobId, nextJobId(), "\0", LONE])
      await plans.drop(jobId);
    expect(await runIdsOf(plans, dropped.planId)).toEqual([ended.jobId]);
    expect(await plans.run(dropped.jobId)).toBeNull();
    // As if it had never been.
    await plans.begin(dropped);
    expect(await plans.run(dropped.jobId)).toMatchObject({ ...dropped, steps: [] });
  });

  check("a run outlives its job, and needs none", async (h) => {
    const run = await begun(h.ledger);
    await acceptOne(h.ledger, { jobId: run.jobId, planId: run.planId, phase: run.phase });
    await h.ledger.cancel([run.jobId]);
    expect(await h.ledger.evict({ ttlMs: 1_000_000, keep: 0, chunk: 10 })).toBe(1);
    expect(await h.ledger.plans.run(run.jobId)).toMatchObject(run);
  });

  checkShared("what one has recorded the other sees at once", async (h) => {
    const theirs = (await h.second()).plans;
    const run = await begun(h.ledger);
    const patch = new Uint8Array([0, 255, 10, 13]);
    await theirs.writeStep(stepOf(run.jobId, 0));
    await h.ledger.plans.finish({ jobId: run.jobId, outcomeJson: "{}", patch });
    expect(await theirs.run(run.jobId)).toEqual(await h.ledger.plans.run(run.jobId));
    expect(await theirs.run(run.jobId)).toMatchObject({ patchBytes: 4, steps: [{ step: 0 }] });
    expect(await theirs.patch(run.jobId)).toEqual(patch);
    expect(await theirs.list(10)).toEqual(await h.ledger.plans.list(10));
    expect(await theirs.runs(run.planId)).toEqual(await h.ledger.plans.runs(run.planId));
  });
}

function stepCases({ check }: Cases): void {
  check("steps come in order, and the last record of a step is the one", async (h) => {
    const { plans } = h.ledger;
    const run = await begun(h.ledger);
    const other = await begun(h.ledger);
    const places = [2, 0, MAX_PLAN_STEPS - 1, 1];
    await Promise.all(places.map((step) => plans.writeStep(stepOf(run.jobId, step))));
    const again = stepOf(run.jobId, 1, { recordJson: `{"again":true}`, log: "" });
    await plans.writeStep(again);
    await plans.writeStep(stepOf(other.jobId, 0));
    expect(present(await plans.run(run.jobId)).steps).toEqual([
      stepOf(run.jobId, 0),
      again,
      stepOf(run.jobId, 2),
      stepOf(run.jobId, MAX_PLAN_STEPS - 1),
    ]);
    expect(present(await plans.run(other.jobId)).steps).toEqual([stepOf(other.jobId, 0)]);
  });

  check("nothing happens where the run is not known", async (h) => {
    const { plans } = h.ledger;
    const jobId = nextJobId();
    await plans.writeStep(stepOf(jobId, 0));
    await plans.finish({ jobId, outcomeJson: "{}", patch: new Uint8Array(1) });
    expect(await plans.run(jobId)).toBeNull();
    expect(await plans.patch(jobId)).toBeNull();
  });

  check("JSON comes back as written, and hostile text cleaned", async (h) => {
    const { plans } = h.ledger;
    const json = ` ${JSON.stringify({ text: HOSTILE, number: 1.5 })}\n`;
    const { planId } = await plans.use(planOf());
    const run = runOf(planId, { definitionJson: json });
    await plans.begin(run);
    await plans.writeStep(stepOf(run.jobId, 0, { recordJson: json, log: HOSTILE }));
    await plans.writeStep(stepOf(run.jobId, 1, { recordJson: HOSTILE, log: `${LONE}x` }));
    await plans.finish({ jobId: run.jobId, outcomeJson: json });
    expect(await plans.run(run.jobId)).toMatchObject({
      definitionJson: json,
      outcomeJson: json,
      steps: [
        { recordJson: json, log: CLEANED },
        { recordJson: CLEANED, log: "\ufffdx" },
      ],
    });
  });

  check("a long log is cut between characters, and says so", async (h) => {
    const { plans } = h.ledger;
    const { jobId } = await begun(h.ledger);
    await plans.writeStep(stepOf(jobId, 0, { log: `x${"👍".repeat(MAX_STEP_LOG_CHARS / 2)}` }));
    const log = present(present(await plans.run(jobId)).steps[0]).log;
    expect(log.length).toBeLessThanOrEqual(MAX_STEP_LOG_CHARS);
    expect(log.length).toBeGreaterThan(MAX_STEP_LOG_CHARS - 3);
    expect(log.endsWith("👍…")).toBe(true);
  });
}

function outcomeCases({ check }: Cases): void {
  check(
    "an outcome is replaced by a later one; a patch stays until there is another",
    async (h) => {
      const { plans } = h.ledger;
      const { jobId, planId } = await begun(h.ledger);
      const finish = async (outcome: Omit<RunOutcomeRecord, "jobId">): Promise<unknown> => {
        await plans.finish({ jobId, ...outcome });
        const { outcomeJson, patchBytes } = present(await plans.run(jobId));
        expect(await plans.runs(planId)).toMatchObject([{ hasEnded: true, patchBytes }]);
        return [outcomeJson, patchBytes, await plans.patch(jobId)];
      };
      const [one, two] = [Uint8Array.from({ length: 700 }, (_, at) => at % 256), new Uint8Array()];
      expect(await finish({ outcomeJson: "1" })).toEqual(["1", null, null]);
      expect(await finish({ outcomeJson: "2", patch: one })).toEqual(["2", 700, one]);
      expect(await finish({ outcomeJson: "3" })).toEqual(["3", 700, one]);
      expect(await finish({ outcomeJson: "4", patch: two })).toEqual(["4", 0, two]);
    },
  );

  check("a patch is what it was when it was given, and when it was asked for", async (h) => {
    const { plans } = h.ledger;
    const { jobId } = await begun(h.ledger);
    const whole = Buffer.from("xdiff --git a b\n");
    const given = whole.subarray(1);
    const finished = plans.finish({ jobId, outcomeJson: "{}", patch: given });
    whole.fill("!");
    await finished;
    const seen = present(await plans.patch(jobId));
    expect(Buffer.from(seen).toString()).toBe("diff --git a b\n");
    seen.fill(0);
    expect(Buffer.from(present(await plans.patch(jobId))).toString()).toBe("diff --git a b\n");
  });

  check("ten megabytes go in and come out", async (h) => {
    const { plans } = h.ledger;
    const { jobId } = await begun(h.ledger);
    const patch = Buffer.alloc(10 * 1024 * 1024, "\0\xff\n'\\é");
    await plans.finish({ jobId, outcomeJson: "{}", patch });
    expect(patch.equals(present(await plans.patch(jobId)))).toBe(true);
    expect(await plans.run(jobId)).toMatchObject({ patchBytes: patch.byteLength });
  });
}

function forgettingCases({ check, checkShared }: Cases): void {
  check("of a plan the newest runs are kept, and the newest one with a patch", async (h) => {
    const { plans } = h.ledger;
    const { planId } = await plans.use(planOf());
    const { planId: otherId } = await plans.use(planOf({ name: "other" }));
    const other = runOf(otherId);
    await plans.begin(other);
    const runs: string[] = [];
    const add = async (patch?: Uint8Array): Promise<void> => {
      const { jobId } = runOf(planId);
      await plans.begin(runOf(planId, { jobId }));
      await plans.writeStep(stepOf(jobId, 0));
      if (patch !== undefined) await plans.finish({ jobId, outcomeJson: "{}", patch });
      runs.unshift(jobId);
      await h.age(MINUTE_MS);
    };
    await add(new Uint8Array([1]));
    await add(new Uint8Array([2]));
    await add();
    const [, patched] = runs;
    for (let more = 0; more < KEPT_RUNS; more += 1) await add();
    expect(await runIdsOf(plans, planId)).toEqual([...runs.slice(0, KEPT_RUNS), patched]);
    expect(await plans.patch(present(patched))).toEqual(new Uint8Array([2]));
    const forgotten = runs.slice(KEPT_RUNS).filter((jobId) => jobId !== patched);
    expect(forgotten).toHaveLength(2);
    for (const jobId of forgotten) {
      expect(await plans.run(jobId)).toBeNull();
      await plans.writeStep(stepOf(jobId, 1));
      await plans.finish({ jobId, outcomeJson: "{}" });
      expect(await plans.run(jobId)).toBeNull();
    }
    await add(new Uint8Array([3]));
    expect(await plans.run(present(patched))).not.toBeNull();
    await add();
    expect(await plans.run(present(patched))).toBeNull();
    expect(await plans.run(other.jobId)).not.toBeNull();
  });

  check("so is the newest apply that has ended, however many came after it", async (h) => {
    const { plans } = h.ledger;
    const { planId } = await plans.use(planOf());
    const add = async (phase: Phase, ends: boolean): Promise<string> => {
      const run = runOf(planId, { phase });
      await plans.begin(run);
      if (ends) await plans.finish({ jobId: run.jobId, outcomeJson: "{}" });
      await h.age(MINUTE_MS);
      return run.jobId;
    };
    const [older, applied] = [await add("apply", true), await add("apply", true)];
    await add("apply", false);
    for (let more = 0; more < KEPT_RUNS; more += 1) await add("execute", true);
    const kept = await runIdsOf(plans, planId);
    expect(kept).toHaveLength(KEPT_RUNS + 1);
    expect(kept.at(-1)).toBe(applied);
    expect(await plans.run(older)).toBeNull();
  });

  check("of plans those used last are kept, with their runs", async (h) => {
    const { plans } = h.ledger;
    const names = Array.from({ length: KEPT_PLANS }, (_, at) => `plan ${String(at)}`);
    const use = (name: string): Promise<PlanRecord> => plans.use(planOf({ name }));
    const [oldest, second] = [await use("plan 0"), await use("plan 1")];
    const [lost, kept] = [runOf(second.planId), runOf(oldest.planId)];
    for (const run of [lost, kept]) await plans.begin(run);
    await h.age(MINUTE_MS);
    await Promise.all(names.slice(2).map(use));
    expect(await plans.list(KEPT_PLANS)).toHaveLength(KEPT_PLANS);
    await use("plan 0");
    await use("one more");
    const now = await plans.list(KEPT_PLANS);
    expect(now).toHaveLength(KEPT_PLANS);
    expect(now.map(({ name }) => name)).toEqual(expect.arrayContaining(["plan 0", "one more"]));
    expect(await plans.find("plan 1", 10)).toEqual([]);
    expect(await plans.run(lost.jobId)).toBeNull();
    expect(await plans.run(kept.jobId)).toMatchObject(kept);
  });

  checkShared("runs that begin at once are all kept", async (h) => {
    const theirs = (await h.second()).plans;
    const { planId } = await h.ledger.plans.use(planOf());
    for (let round = 0; round < KEPT_RUNS; round += 1) await theirs.begin(runOf(planId));
    await h.age(MINUTE_MS);
    const runs = Array.from({ length: 12 }, () => runOf(planId));
    await Promise.all(runs.map((run, at) => (at % 2 === 0 ? theirs : h.ledger.plans).begin(run)));
    expect(await runIdsOf(theirs, planId)).toEqual(
      expect.arrayContaining(runs.map(({ jobId }) => jobId)),
    );
    await theirs.begin(runOf(planId));
    expect(await theirs.runs(planId)).toHaveLength(KEPT_RUNS);
  });
}

function refusalCases({ check }: Cases): void {
  const beyond = (chars: number): string => `"${"x".repeat(chars)}"`;
  const plans: readonly (readonly [string, Partial<PlanSeen>])[] = [
    ["planId", { planId: "tidy" }],
    ["name", { name: "" }],
    ["name", { name: "x".repeat(MAX_PLAN_NAME_CHARS + 1) }],
    ["name", { name: "a\0" }],
    ["name", { name: LONE }],
    ["workspace", { workspace: "" }],
    ["workspace", { workspace: "/a\0" }],
    ["workspace", { workspace: `/${LONE}` }],
    ["workspace", { workspace: "/漢".repeat(MAX_PATH_BYTES / 4 + 1) }],
    ["file", { file: "/a\0" }],
    ["file", { file: `/${"x".repeat(MAX_PATH_BYTES)}` }],
  ];
  for (const [what, given] of plans)
    check(`a ${what} that can't be kept is refused: ${shown(given)}`, async (h) => {
      await expect(h.ledger.plans.use(planOf(given))).rejects.toThrow(
        `plan records: ${what}: must`,
      );
      expect(await h.ledger.plans.list(10)).toEqual([]);
    });

  check("so are jobs' ids, steps, JSON and patches beyond their bounds", async (h) => {
    const { plans } = h.ledger;
    const { jobId, planId } = await begun(h.ledger);
    const refused = (what: string, call: Promise<unknown>): Promise<void> =>
      expect(call).rejects.toThrow(`plan records: ${what}: must`);
    const large = beyond(MAX_PLAN_JSON_CHARS);
    await refused("jobId", plans.begin(runOf(planId, { jobId: `job_${jobId}` })));
    await refused("definitionJson", plans.begin(runOf(planId, { definitionJson: large })));
    for (const step of [-1, 0.5, Number.NaN, MAX_PLAN_STEPS])
      await refused("step", plans.writeStep(stepOf(jobId, step)));
    await refused(
      "recordJson",
      plans.writeStep(stepOf(jobId, 0, { recordJson: beyond(MAX_STEP_JSON_CHARS) })),
    );
    await refused("outcomeJson", plans.finish({ jobId, outcomeJson: large }));
    const patch = new Uint8Array(MAX_PATCH_BYTES + 1);
    await refused("patch", plans.finish({ jobId, outcomeJson: "{}", patch }));
    expect(await runIdsOf(plans, planId)).toEqual([jobId]);
    expect(await plans.run(jobId)).toMatchObject({
      outcomeJson: null,
      patchBytes: null,
      steps: [],
    });
  });

  check("a value that can't be kept harms no call beside it", async (h) => {
    const { plans } = h.ledger;
    const calls = [planOf(), planOf({ name: "\0" }), planOf({ name: "other" })];
    const outcomes = await Promise.allSettled(calls.map((plan) => plans.use(plan)));
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    const stray = runOf(nextJobId());
    const begins = [runOf(present(calls[0]).planId), stray, runOf(present(calls[2]).planId)];
    const begun = await Promise.allSettled(begins.map((run) => plans.begin(run)));
    expect(begun.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  });
}

function jobCases({ check, checkShared }: Cases): void {
  const planJob = (phase: Phase, given: Partial<NewJob> = {}): Partial<NewJob> => ({
    planId: nextJobId(),
    phase,
    task: PLAN_TASKS[phase],
    ...given,
  });

  for (const phase of ["execute", "apply"] as const)
    check(`the job of a phase keeps its plan and phase on every way: ${phase}`, async (h) => {
      const { ledger } = h;
      const given = planJob(phase, { maxAttempts: 2 });
      const planId = present(given.planId);
      const payloadJson = encodePlanPayload(planId, phase);
      const held = { planId, phase, task: PLAN_TASKS[phase] };
      const { jobId } = await acceptOne(ledger, { ...given, payloadJson });
      expect(await see(ledger, jobId)).toMatchObject({ ...held, status: "queued" });
      const claimed = async (): Promise<Job> => {
        const [found] = await claim(ledger, 1, WORKER, [PLAN_TASKS[phase]]);
        expect(found).toMatchObject({ job: { ...held, jobId }, payloadJson });
        return present(found).job;
      };
      await claimed();
      const rescued = await ledger.rescue({ ...PATIENT, goneWorkerIds: [WORKER] });
      expect(rescued).toEqual([{ jobId, workerId: WORKER, status: "queued" }]);
      expect(await see(ledger, jobId)).toMatchObject({ ...held, status: "queued" });
      const job = await claimed();
      expect(await settleOne(ledger, claimOf(job), SUCCEED)).toBe(true);
      expect((await ledger.result(jobId))?.job).toMatchObject({ ...held, status: "succeeded" });
    });

  check("the job of a phase whose worker is lost fails, as any with one attempt", async (h) => {
    const { job } = await jobIn(h.ledger, "running", planJob("apply"));
    await h.ledger.rescue({ ...PATIENT, goneWorkerIds: [WORKER] });
    const { jobId, planId, phase } = job;
    const lost = { planId, phase, status: "failed", errorMessage: STUCK_MESSAGE };
    expect(await see(h.ledger, jobId)).toMatchObject(lost);
  });

  check("the jobs of a plan, and no others: newest first, filtered, in pages", async (h) => {
    const planId = nextJobId();
    const byStatus = new Map<Status, string>();
    for (const status of ALL_STATUSES.toReversed()) {
      await h.ledger.submit([newJob({ ...planJob("apply"), task: "beside" })], ROOMY);
      byStatus.set(
        status,
        (await jobIn(h.ledger, status, planJob("execute", { planId }))).job.jobId,
      );
    }
    const apply = await acceptOne(h.ledger, planJob("apply", { planId }));
    const newestFirst = [apply.jobId, ...[...byStatus.values()].toReversed()];
    for (const limit of [1, 2, 7, 100])
      expect(await pages(h.ledger, { planId, limit })).toEqual(newestFirst);
    expect((await h.ledger.list({ planId, limit: 100 })).jobs).toEqual(
      await h.ledger.get(newestFirst),
    );
    const task = PLAN_TASKS.execute;
    for (const status of ALL_STATUSES)
      expect(await pages(h.ledger, { planId, task, statuses: [status], limit: 5 })).toEqual([
        byStatus.get(status),
      ]);
    expect(await pages(h.ledger, { planId, task: PLAN_TASKS.apply, limit: 5 })).toEqual([
      apply.jobId,
    ]);
    expect(await pages(h.ledger, { planId, statuses: ["queued"], limit: 1 })).toEqual([
      apply.jobId,
      byStatus.get("queued"),
    ]);
    for (const unknown of [nextJobId(), "", "null", "%"])
      expect(await h.ledger.list({ planId: unknown, limit: 5 })).toEqual({ jobs: [] });
  });

  checkShared("the jobs of a plan are listed over both", async (h) => {
    const planId = nextJobId();
    const theirs = await h.second();
    const mine = await acceptOne(h.ledger, planJob("execute", { planId }));
    const other = await acceptOne(theirs, planJob("apply", { planId }));
    for (const ledger of [h.ledger, theirs])
      expect(await pages(ledger, { planId, limit: 1 })).toEqual([other.jobId, mine.jobId]);
  });
}

function shown(given: Partial<PlanSeen>): string {
  const [text] = Object.values(given);
  return JSON.stringify((text ?? "").slice(0, 10));
}
