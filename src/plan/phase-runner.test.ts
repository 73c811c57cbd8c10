import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { gitView, Scratch } from "../../test/plan/scratch.js";
import { STOP_REASONS } from "../engine/attempt.js";
import { LedgerError } from "../job/errors.js";
import { formatJobId } from "../job/id.js";
import type { Phase } from "../job/job.js";
import type { Ledger } from "../ledger/ledger.js";
import type { PlanRecords } from "../ledger/plan-records.js";
import { openMemoryLedger } from "../ledger/memory/memory-ledger.js";
import { systemClock } from "../runtime/clock.js";
import { silentLogger } from "../runtime/logger.js";
import { systemProcesses } from "../runtime/process-identity.js";
import { idSource, systemRandom } from "../runtime/random.js";
import type { TaskContext } from "../task/task.js";
import { checkApply } from "./asked.js";
import type { PlanDefinition, StepDefinition } from "./definition.js";
import { readOutcome, type PhaseOutcome } from "./outcome.js";
import { PhaseRunner, type PhaseResult } from "./phase-runner.js";
import { Plans } from "./plans.js";
import { openWorkspace } from "./workspace/workspace.js";

const PLAN = "01J0000000000000000000000P";

let scratch: Scratch;
let ledger: Ledger;
let root: string;
const newId = idSource(systemClock, systemRandom());

beforeEach(async () => {
  scratch = new Scratch();
  ledger = openMemoryLedger({ clock: systemClock });
  root = scratch.repository("r", { a: "1\n", b: "1\n" });
  await ledger.plans.use({ planId: PLAN, name: "p", workspace: root, file: null });
});
afterEach(() => {
  scratch.remove();
});

function step(run: string): StepDefinition {
  const common = { id: null, name: run, timeoutMs: null, continueOnError: false };
  return { kind: "command", run, shell: ["sh", "-e", "-c"], cwd: ".", env: {}, ...common };
}

function plan(execute: string, ...apply: string[]): PlanDefinition {
  return {
    name: "p",
    workspace: root,
    base: "working-tree",
    env: {},
    timeoutMs: null,
    execute: [step(execute)],
    apply: apply.map(step),
  };
}

/** The same ledger, of which some verbs for plans do otherwise. */
function withPlans(ledger: Ledger, other: Partial<PlanRecords>): Ledger {
  const { plans } = ledger;
  const same: PlanRecords = {
    use: (...args) => plans.use(...args),
    find: (...args) => plans.find(...args),
    list: (...args) => plans.list(...args),
    begin: (...args) => plans.begin(...args),
    drop: (...args) => plans.drop(...args),
    writeStep: (...args) => plans.writeStep(...args),
    finish: (...args) => plans.finish(...args),
    run: (...args) => plans.run(...args),
    runs: (...args) => plans.runs(...args),
    patch: (...args) => plans.patch(...args),
  };
  return new Proxy(ledger, {
    get(target, name): unknown {
      if (name === "plans") return { ...same, ...other };
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

interface Ran {
  readonly jobId: string;
  readonly ending: PromiseSettledResult<PhaseResult>;
  readonly outcome: PhaseOutcome | null;
}

/** A phase as a worker's slot runs it. @param stop what ends it once a step has written something. */
async function ran(phase: Phase, definition: PlanDefinition, stop?: string): Promise<Ran> {
  const jobId = newId();
  const definitionJson = JSON.stringify(definition);
  await ledger.plans.begin({ jobId, planId: PLAN, phase, definitionJson });
  const controller = new AbortController();
  const runner = new PhaseRunner({
    ledger,
    env: scratch.env,
    clock: systemClock,
    logger: silentLogger,
    processes: systemProcesses(),
    tasks: { run: () => Promise.reject(new Error("no tasks here")) },
    graceMs: 1_000,
    sandboxRoot: scratch.path("sandboxes"),
    watcher: {
      stepStarted: () => undefined,
      stepWrote: () => {
        if (stop !== undefined) controller.abort(new Error(stop));
      },
      stepEnded: () => undefined,
    },
  });
  const ctx = { jobId: formatJobId(jobId), signal: controller.signal } as TaskContext;
  const [ending] = await Promise.allSettled([runner.run({ planId: PLAN, phase }, ctx)]);
  const json = (await ledger.plans.run(jobId))?.outcomeJson ?? null;
  return { jobId, ending, outcome: json === null ? null : readOutcome(json) };
}

function reasonOf({ ending }: Ran): string {
  return ending.status === "rejected" ? String(ending.reason) : "it succeeded";
}

async function executed(definition: PlanDefinition): Promise<string> {
  const { jobId, ending } = await ran("execute", definition);
  expect(ending.status).toBe("fulfilled");
  return jobId;
}

const HOLD = "echo begun; sleep 300";

describe.each([
  { cause: STOP_REASONS.cancelled, status: "cancelled", errorMessage: null },
  { cause: STOP_REASONS.shutdown, status: "cancelled", errorMessage: null },
  {
    cause: STOP_REASONS.time_limit,
    status: "timed_out",
    errorMessage: "TimeLimit: the phase ran for too long",
  },
  {
    cause: STOP_REASONS.lost,
    status: "failed",
    errorMessage: `WorkerLost: ${STOP_REASONS.lost}`,
  },
] as const)("stopped while a step runs ($cause)", ({ cause, status, errorMessage }) => {
  test("an execute leaves no sandbox and no patch", async () => {
    const { outcome, jobId } = await ran("execute", plan(HOLD), cause);
    expect(outcome).toMatchObject({ status, errorMessage, files: [] });
    expect(await ledger.plans.patch(jobId)).toBeNull();
    expect(existsSync(join(root, ".git/worktrees"))).toBe(false);
  });

  test("an apply is taken back, and can be done again", async () => {
    const before = gitView(root);
    await executed(plan("echo 2 > a", HOLD));
    const stopped = await ran("apply", plan("", HOLD), cause);
    expect(stopped.outcome).toMatchObject({ status, errorMessage, files: [] });
    expect(gitView(root)).toEqual(before);
    expect((await ran("apply", plan("", "true"))).outcome).toMatchObject({ status: "succeeded" });
    expect(readFileSync(join(root, "a"), "utf8")).toBe("2\n");
  });
});

test("an execute that changes nothing has an empty patch, which can be applied, once", async () => {
  const before = gitView(root);
  const jobId = await executed(plan("true"));
  expect(await ledger.plans.patch(jobId)).toEqual(new Uint8Array());
  const first = await ran("apply", plan("true"));
  expect(first.outcome).toMatchObject({ status: "succeeded", files: [], executeJobId: jobId });
  expect(gitView(root)).toEqual(before);
  expect(reasonOf(await ran("apply", plan("true")))).toMatch(
    /^PlanRefused: plan p: nothing to apply: its patch was applied by job_\w+ already$/,
  );
});

test("steps of an apply that edit patched files and then fail: the original comes back, theirs is kept", async () => {
  const before = gitView(root);
  const definition = plan("echo 2 > a", "echo mine > a; echo also > b; exit 3");
  await executed(definition);
  const failed = await ran("apply", definition);
  const kept = join(root, ".git/jobtable/kept", failed.jobId, "a");
  const note = `a was edited after the apply began: the original is back, your version is ${kept}`;
  expect(reasonOf(failed)).toMatch(/^StepFailed: .*exit code 3; the patch was taken back; /);
  expect(reasonOf(failed)).toContain(note);
  expect(failed.outcome).toMatchObject({ status: "failed", notes: [note] });
  expect(gitView(root)).toEqual({ ...before, b: expect.any(String) as string });
  expect(readFileSync(join(root, "a"), "utf8")).toBe("1\n");
  expect(readFileSync(join(root, "b"), "utf8")).toBe("also\n");
  expect(readFileSync(kept, "utf8")).toBe("mine\n");
});

test("the patch is of the files as they lie there; what was not committed is no part of it", async () => {
  writeFileSync(join(root, "b"), "dirty\n");
  const jobId = await executed(plan('test "$(cat b)" = dirty; echo 2 > a'));
  const patch = Buffer.from((await ledger.plans.patch(jobId)) ?? []).toString();
  expect(patch).toContain("+2");
  expect(patch).not.toContain("dirty");
});

test("a sandbox that can't be removed spoils no execute, and is told of", async () => {
  // As a file of another user would: nobody removes a folder as a file.
  const { outcome } = await ran(
    "execute",
    plan('rm "$PWD.json"; mkdir -p "$PWD.json/x"; echo 2 > a'),
  );
  expect(outcome).toMatchObject({ status: "succeeded", files: [{ path: "a" }] });
  expect(outcome?.notes).toEqual([expect.stringMatching(/^\/.* can't be removed/)]);
});

describe("a workspace that another process holds", () => {
  /** Of an apply that nobody can see, in the middle of it. */
  beforeEach(async () => {
    const { jobId } = await ran("execute", plan("echo 2 > a"));
    const patch = (await ledger.plans.patch(jobId)) ?? new Uint8Array();
    const owner = { ...systemProcesses().self, host: "elsewhere/boot/pid:[1]/" };
    const workspace = await openWorkspace(root, { env: scratch.env, clock: systemClock });
    const result = await workspace.apply(patch, { id: OTHER, owner, isGone: () => false });
    expect(result.kind).toBe("applied");
    expect(readFileSync(join(root, "a"), "utf8")).toBe("2\n");
  });

  const OTHER = "01J0000000000000000000000X";
  const BUSY =
    /^WorkspaceBusy: .*: job_01J0000000000000000000000X, in process \d+ of elsewhere; .*remove ".*\/lock\/1"$/;

  /** Its run is kept for longer than the job. */
  async function jobOver(): Promise<void> {
    const definitionJson = JSON.stringify(plan("", "true"));
    await ledger.plans.begin({ jobId: OTHER, planId: PLAN, phase: "apply", definitionJson });
  }

  test("is not copied half-applied, nor applied to; its last commit is", async () => {
    expect(reasonOf(await ran("execute", plan("true")))).toMatch(BUSY);
    expect(reasonOf(await ran("apply", plan("true")))).toMatch(BUSY);
    const head = await ran("execute", { ...plan('test "$(cat a)" = 1'), base: "head" });
    expect(head.ending.status).toBe("fulfilled");
  });

  test("is not said to fit a patch, or not to", async () => {
    const plans = new Plans({ ledger, newId, asyncMaxQueue: 1, processes: systemProcesses() });
    const checking = async (): Promise<unknown> =>
      checkApply({ plans, host: scratch.host }, await plans.find("p"));
    await expect(checking()).rejects.toMatchObject({
      code: "apply_failed",
      message: expect.stringMatching(
        /^another process has the workspace, wait for it: job_01J0000000000000000000000X, .*\/lock\/1"$/,
      ) as string,
    });
    await jobOver();
    await expect(checking()).rejects.toThrow("was cut short");
  });

  test("is taken over once its job is known to have ended", async () => {
    await jobOver();
    const { ending } = await ran("execute", plan('test "$(cat a)" = 1'));
    expect(ending.status).toBe("fulfilled");
    expect(readFileSync(join(root, "a"), "utf8")).toBe("1\n");
    const { outcomeJson } = (await ledger.plans.run(OTHER)) ?? {};
    expect(readOutcome(outcomeJson ?? "null")).toMatchObject({ status: "failed" });
  });
});

describe("a store that is out of reach", () => {
  const away = (): Promise<never> =>
    Promise.reject(new LedgerError("ledger_unavailable", "the connection is cut"));

  test("when an apply is to be recorded: it stays, and the next use of the workspace says so", async () => {
    const executeJobId = await executed(plan("echo 2 > a"));
    const whole = ledger;
    ledger = withPlans(whole, { finish: away });
    const silent = await ran("apply", plan("true"));
    expect(silent).toMatchObject({ ending: { status: "fulfilled" }, outcome: null });
    expect(readFileSync(join(root, "a"), "utf8")).toBe("2\n");
    ledger = whole;
    expect(reasonOf(await ran("apply", plan("true")))).toContain("was applied by");
    const { outcomeJson } = (await ledger.plans.run(silent.jobId)) ?? {};
    expect(readOutcome(outcomeJson ?? "null")).toMatchObject({ status: "succeeded", executeJobId });
  });

  test("when an execute is to be recorded: it fails, and nothing can be applied", async () => {
    const whole = ledger;
    ledger = withPlans(whole, { finish: away });
    expect(reasonOf(await ran("execute", plan("echo 2 > a")))).toContain("the connection is cut");
    ledger = whole;
    expect(reasonOf(await ran("apply", plan("true")))).toContain("nothing to apply");
  });

  test("while steps run: only lines are lost that somebody might have watched", async () => {
    const whole = ledger;
    let calls = 0;
    const flaky = (...args: Parameters<typeof whole.plans.writeStep>): Promise<void> =>
      (calls += 1) <= 2 ? away() : whole.plans.writeStep(...args);
    ledger = withPlans(whole, { writeStep: flaky });
    const { jobId } = await ran("execute", plan("echo said"));
    const [recorded] = (await whole.plans.run(jobId))?.steps ?? [];
    expect(recorded?.log).toBe("said\n");
    expect(recorded?.recordJson).toContain('"succeeded"');
  });
});

test("a run that is not on record any more says so", async () => {
  const whole = ledger;
  ledger = withPlans(whole, { run: () => Promise.resolve(null) });
  expect(reasonOf(await ran("execute", plan("true")))).toMatch(/^PlanGone: .* of plan_/);
});
