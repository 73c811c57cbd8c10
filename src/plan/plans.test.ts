import { describe, expect, test } from "vitest";
import { isTerminal } from "../job/state.js";
import type { Ledger } from "../ledger/ledger.js";
import { KEPT_RUNS } from "../ledger/plan-records.js";
import { openMemoryLedger } from "../ledger/memory/memory-ledger.js";
import { systemProcesses, type ProcessIdentity } from "../runtime/process-identity.js";
import { idSource, systemRandom } from "../runtime/random.js";
import { VirtualClock } from "../../test/virtual-clock.js";
import type { PlanDefinition } from "./definition.js";
import { Plans, type StartOutcome } from "./plans.js";
import type { PhaseOutcome } from "./outcome.js";

const WORKER = "worker-00000000";
const HERE: ProcessIdentity = { host: "here", pid: 7, pidStamp: "1" };

const DEFINITION: PlanDefinition = {
  name: "rename",
  workspace: "/srv/app",
  base: "head",
  env: {},
  timeoutMs: 60_000,
  execute: [],
  apply: [],
};

interface Rig {
  readonly ledger: Ledger;
  readonly clock: VirtualClock;
  readonly plans: Plans;
}

function rig(asyncMaxQueue = 16): Rig {
  const clock = new VirtualClock();
  const ledger = openMemoryLedger({ clock });
  return { clock, ledger, plans: another({ ledger, clock }, asyncMaxQueue) };
}

/** As another process has it. */
function another(
  { ledger, clock }: Pick<Rig, "ledger" | "clock">,
  asyncMaxQueue = 16,
  gone?: ProcessIdentity,
): Plans {
  const isGone = ({ pid }: ProcessIdentity): boolean => pid === gone?.pid;
  const processes = { ...systemProcesses(), self: HERE, isGone };
  return new Plans({ ledger, newId: idSource(clock, systemRandom()), asyncMaxQueue, processes });
}

function execute(plans: Plans, definition = DEFINITION): Promise<StartOutcome> {
  return plans.execute({ definition, file: "/srv/app/rename.yaml" });
}

async function started(starting: Promise<StartOutcome>): Promise<string> {
  const outcome = await starting;
  if (outcome.kind !== "started") throw new Error(`not started: ${outcome.kind}`);
  return outcome.job.jobId;
}

/** As a worker ends it. */
async function end(
  { ledger }: Rig,
  jobId: string,
  outcome: Partial<PhaseOutcome> = {},
  patch?: Uint8Array,
): Promise<void> {
  const [job] = await ledger.get([jobId]);
  if (job === undefined || job === null) throw new Error(`no job ${jobId}`);
  await ledger.claim({ workerId: WORKER, tasks: [job.task], limit: 1 });
  const written: PhaseOutcome = {
    status: "succeeded",
    startedAtMs: 1,
    finishedAtMs: 2,
    errorMessage: null,
    files: [],
    notes: [],
    ...outcome,
  };
  await ledger.plans.finish({
    jobId,
    outcomeJson: JSON.stringify(written),
    ...(patch === undefined ? {} : { patch }),
  });
  const claim = { jobId, workerId: WORKER, attempt: 1 };
  const [status] = await ledger.settle([{ ...claim, end: { event: "succeed", resultJson: "{}" } }]);
  expect(status).toBe("succeeded");
}

describe("one phase of a plan at a time", () => {
  test("of twenty who ask at once one starts it, and the others are told its job", async () => {
    const { plans, ledger, clock } = rig(1_000);
    const all = [plans, another({ ledger, clock }, 1_000)];
    const asked = Array.from({ length: 20 }, (_, index) => execute(all[index % 2] ?? plans));
    const outcomes = await Promise.all(asked);
    const jobIds = new Set(outcomes.map((outcome) => ("job" in outcome ? outcome.job.jobId : "")));
    expect(outcomes.filter(({ kind }) => kind === "started")).toHaveLength(1);
    expect(outcomes.filter(({ kind }) => kind === "held")).toHaveLength(19);
    expect(jobIds.size).toBe(1);
    expect((await ledger.list({ limit: 100 })).jobs).toHaveLength(1);
  });

  test("the next starts when it has ended, also where another process's clock is behind", async () => {
    const ahead = rig();
    const { ledger, clock } = ahead;
    await clock.advance(120_000);
    await end(ahead, await started(execute(ahead.plans)));
    const behind = another({ ledger, clock: new VirtualClock() });
    const second = await started(execute(behind));
    expect((await execute(ahead.plans)).kind).toBe("held");
    await end(ahead, second);
    await started(execute(ahead.plans));
    expect((await execute(behind)).kind).toBe("held");
  });

  test("another plan, or one of that name elsewhere, is not held up", async () => {
    const { plans } = rig();
    await started(execute(plans));
    await started(execute(plans, { ...DEFINITION, name: "other" }));
    await started(execute(plans, { ...DEFINITION, workspace: "/srv/other" }));
  });

  test("what is refused for want of room leaves nothing that holds", async () => {
    const { plans, ledger } = rig(0);
    expect(await execute(plans)).toEqual({ kind: "full", limit: 0, retryAfterS: 1 });
    const [plan] = await plans.list();
    expect(plan).toMatchObject({ execute: null, apply: null });
    expect((await ledger.counts()).queued).toBe(0);
  });

  test("in place it waits for no room, and is a job of a task of that process alone", async () => {
    const { plans } = rig(0);
    const place = { jobId: "01J0000000000000000000000A", task: "plan:execute:here" };
    const outcome = await plans.execute({ definition: DEFINITION, file: null }, place);
    expect(outcome).toMatchObject({
      kind: "started",
      job: { ...place, phase: "execute", timeoutMs: 60_000, schemaVersion: 1, maxAttempts: 1 },
    });
  });
});

describe("a phase in place whose process is gone", () => {
  const place = { jobId: "01J0000000000000000000000A", task: "plan:execute:here" };

  test("is cancelled by the next who asks, while it waits", async () => {
    const parts = rig();
    expect((await parts.plans.execute({ definition: DEFINITION, file: null }, place)).kind).toBe(
      "started",
    );
    expect((await execute(parts.plans)).kind).toBe("held");
    const later = another(parts, 16, HERE);
    const next = await started(execute(later));
    expect(await parts.ledger.get([place.jobId, next])).toMatchObject([
      { status: "cancelled" },
      { status: "queued" },
    ]);
    // Any worker may run this one, whoever asked.
    expect((await execute(later)).kind).toBe("held");
  });

  test("is cancelled by who asks for that, and is told to him", async () => {
    const parts = rig();
    await parts.plans.execute({ definition: DEFINITION, file: null }, place);
    const later = another(parts, 16, HERE);
    expect(await later.cancel(await later.find("rename"))).toMatchObject({
      kind: "cancelled",
      job: { jobId: place.jobId },
    });
  });

  test("holds while it runs: its worker's silence tells", async () => {
    const parts = rig();
    await parts.plans.execute({ definition: DEFINITION, file: null }, place);
    await parts.ledger.claim({ workerId: WORKER, tasks: [place.task], limit: 1 });
    expect((await execute(another(parts, 16, HERE))).kind).toBe("held");
  });
});

describe("what may be applied", () => {
  test("is the last execute, when it succeeded, once", async () => {
    const parts = rig();
    const { plans } = parts;
    const patch = new TextEncoder().encode("diff");
    const first = await started(execute(plans));
    const plan = await plans.find("rename");
    expect((await plans.apply(plan)).kind).toBe("held");
    await end(parts, first, {}, patch);
    expect((await plans.applicable(plan)).patch).toEqual(patch);
    const applying = await started(plans.apply(plan));
    await end(parts, applying, { executeJobId: first });
    await expect(plans.apply(plan)).rejects.toThrow(
      `plan rename: nothing to apply: its patch was applied by job_${applying} already`,
    );
  });

  test("is still there when a later execute was refused for want of room", async () => {
    const parts = rig();
    const first = await started(execute(parts.plans));
    await end(parts, first, {}, new Uint8Array([1]));
    expect((await execute(another(parts, 0))).kind).toBe("full");
    const plan = await parts.plans.find("rename");
    expect((await parts.plans.applicable(plan)).patch).toEqual(new Uint8Array([1]));
    expect(await started(parts.plans.apply(plan))).not.toBe(first);
  });

  test("is nothing that was applied, however many were refused since", async () => {
    const parts = rig();
    const { plans, ledger } = parts;
    const first = await started(execute(plans));
    await end(parts, first, {}, new Uint8Array([1]));
    const plan = await plans.find("rename");
    await end(parts, await started(plans.apply(plan)), { executeJobId: first });
    for (let refusal = 0; refusal < KEPT_RUNS; refusal += 1)
      expect((await execute(another(parts, 0))).kind).toBe("full");
    expect(await ledger.plans.runs(plan.planId)).toHaveLength(2);
    await expect(plans.apply(plan)).rejects.toThrow("was applied by");
  });

  test("is nothing before an execute, and after one that failed, whatever was before", async () => {
    const parts = rig();
    const { plans, ledger } = parts;
    const plan = await ledger.plans.use({
      planId: "01J0000000000000000000000A",
      name: "rename",
      workspace: "/srv/app",
      file: null,
    });
    await expect(plans.apply(plan)).rejects.toThrow("it was not executed yet");
    await end(parts, await started(execute(plans)), {}, new Uint8Array([1]));
    const failed = { status: "failed", errorMessage: "StepFailed: no" } as const;
    await end(parts, await started(execute(plans)), failed);
    await expect(plans.apply(plan)).rejects.toThrow("its last execute failed: StepFailed: no");
    expect(await plans.diff(plan)).toEqual(new Uint8Array([1]));
    expect(await plans.newestPatch(plan)).toMatchObject({ appliedJobId: null });
  });

  test("is nothing after an execute that was cancelled before it ran, or that still waits", async () => {
    const { ledger, plans } = rig();
    await started(execute(plans));
    const plan = await plans.find("rename");
    await expect(plans.applicable(plan)).rejects.toThrow(/its last execute waits for a worker$/);
    await plans.cancel(plan);
    await expect(plans.applicable(plan)).rejects.toThrow(/its last execute was cancelled$/);
    const [job] = await ledger.get([await started(execute(plans))]);
    await ledger.claim({ workerId: WORKER, tasks: [job?.task ?? ""], limit: 1 });
    await expect(plans.applicable(plan)).rejects.toThrow(/its last execute is running$/);
  });

  test("is nothing after an execute whose worker was lost", async () => {
    const { plans, ledger } = rig();
    const jobId = await started(execute(plans));
    const [job] = await ledger.get([jobId]);
    await ledger.claim({ workerId: WORKER, tasks: [job?.task ?? ""], limit: 1 });
    await ledger.rescue({
      jobTimeoutMs: 1_000,
      workerTimeoutMs: 1_000,
      goneWorkerIds: [WORKER],
      chunk: 10,
    });
    const plan = await plans.find("rename");
    await expect(plans.apply(plan)).rejects.toThrow("WorkerLost");
    expect((await plans.show(plan)).execute).toMatchObject({ status: "failed", jobId });
  });
});

describe("finding a plan", () => {
  test("by its name, its id, and its id as people see it", async () => {
    const { plans } = rig();
    await started(execute(plans));
    const plan = await plans.find("rename");
    expect(plan).toMatchObject({ name: "rename", workspace: "/srv/app" });
    expect(await plans.find(plan.planId)).toEqual(plan);
    expect(await plans.find(`plan_${plan.planId}`)).toEqual(plan);
    await expect(plans.find("renam")).rejects.toThrow("plan not found: renam");
    expect(await plans.lastDefinition(plan)).toEqual(DEFINITION);
  });

  test("a name in two workspaces is asked back, with both", async () => {
    const { plans } = rig();
    await started(execute(plans));
    await started(execute(plans, { ...DEFINITION, workspace: "/srv/other" }));
    await expect(plans.find("rename")).rejects.toThrow(
      /^plan rename is in 2 workspaces; name it by its id: plan_\w{26} in \/srv\/other, plan_\w{26} in \/srv\/app$/,
    );
  });
});

test("the newest patch comes with what came of it", async () => {
  const parts = rig();
  const { plans } = parts;
  const first = await started(execute(plans));
  const plan = await plans.find("rename");
  expect(await plans.newestPatch(plan)).toBeNull();
  await end(parts, first, {}, new Uint8Array([1]));
  const newest = { patch: new Uint8Array([1]), jobId: first, laterJobId: null, appliedJobId: null };
  expect(await plans.newestPatch(plan)).toEqual(newest);
  // One that was refused is no execute.
  expect((await execute(another(parts, 0))).kind).toBe("full");
  expect(await plans.newestPatch(plan)).toEqual(newest);
  const applying = await started(plans.apply(plan));
  await end(parts, applying, { executeJobId: first });
  const later = await started(execute(plans));
  await end(parts, later, { status: "failed", errorMessage: "StepFailed: no" });
  const since = { laterJobId: later, appliedJobId: applying };
  expect(await plans.newestPatch(plan)).toEqual({ ...newest, ...since });
});

describe("looking", () => {
  test("at a run that was started, also when another one came after it", async () => {
    const parts = rig();
    const { plans } = parts;
    const first = await started(execute(plans));
    await end(parts, first, { status: "failed", errorMessage: "StepFailed: no" });
    const second = await started(execute(plans));
    const plan = await plans.find("rename");
    expect((await plans.show(plan)).execute).toMatchObject({ jobId: second, status: "queued" });
    const view = await plans.show(plan, { jobId: first });
    expect(view).toMatchObject({ execute: { jobId: first, status: "failed" }, apply: null });
    expect(await plans.look(first, { steps: false })).toEqual(view.execute);
    expect(await plans.look(plan.planId, { steps: false })).toBeNull();
  });

  test("at all plans: few runs at a time, and no steps", async () => {
    const parts = rig(1_000);
    for (let at = 0; at < 40; at += 1)
      await started(execute(parts.plans, { ...DEFINITION, name: `plan-${String(at)}` }));
    const { plans } = parts.ledger;
    const read = plans.run.bind(plans);
    let [reading, most] = [0, 0];
    plans.run = async (jobId, options) => {
      expect(options).toEqual({ steps: false });
      most = Math.max(most, (reading += 1));
      const run = await read(jobId, options);
      reading -= 1;
      return run;
    };
    const views = await parts.plans.list();
    expect(views.map(({ execute }) => execute?.status)).toEqual(
      Array.from({ length: 40 }, () => "queued"),
    );
    expect(most).toBeLessThanOrEqual(8);
  });
});

test("a cancel goes to the phase that waits or runs", async () => {
  const parts = rig();
  const jobId = await started(execute(parts.plans));
  const plan = await parts.plans.find("rename");
  expect(await parts.plans.cancel(plan)).toMatchObject({ kind: "cancelled", job: { jobId } });
  expect(await parts.plans.cancel(plan)).toBeNull();
  const [job] = await parts.ledger.get([jobId]);
  expect(job !== null && job !== undefined && isTerminal(job.status)).toBe(true);
});
