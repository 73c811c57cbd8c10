/** Steps that run a task, from the job of a phase to what is on record of them. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { Scratch } from "../../test/plan/scratch.js";
import { createInlineRunner } from "../engine/runner/inline-runner.js";
import { formatJobId } from "../job/id.js";
import type { Phase } from "../job/job.js";
import type { Ledger } from "../ledger/ledger.js";
import { openMemoryLedger } from "../ledger/memory/memory-ledger.js";
import { systemClock } from "../runtime/clock.js";
import { silentLogger } from "../runtime/logger.js";
import { systemProcesses } from "../runtime/process-identity.js";
import { defineInline } from "../task/definition.js";
import { createTaskRegistry, type RegisteredTask } from "../task/registry.js";
import type { TaskContext } from "../task/task.js";
import type { PlanDefinition, StepDefinition } from "./definition.js";
import { planTasks } from "./own-tasks.js";
import { runOf } from "./view.js";

const PLAN = "01J0000000000000000000000P";
const JOB = "01J0000000000000000000000J";

let scratch: Scratch;
let ledger: Ledger;
let root: string;

beforeEach(async () => {
  scratch = new Scratch();
  root = scratch.repository("app", { a: "1\n" });
  ledger = openMemoryLedger({ clock: systemClock });
  await ledger.plans.use({ planId: PLAN, name: "p", workspace: root, file: null });
});
afterEach(async () => {
  await ledger.close();
  scratch.remove();
});

function ownTasks(names?: Readonly<Record<Phase, string>>): RegisteredTask[] {
  const tasks = defineInline([
    { name: "double", run: (input: unknown) => ({ twice: Number(input) * 2 }) },
    { name: "broken", run: () => Promise.reject(new RangeError("too far")) },
    { name: "endless", run: (_: unknown, { signal }: TaskContext) => untilAborted(signal) },
  ]);
  const nested = {
    tasks: createTaskRegistry(tasks),
    runner: createInlineRunner({ clock: systemClock }),
    clock: systemClock,
    settings: { cancelGraceMs: 1_000, modelRunTimeoutMs: 0 },
  };
  const ports = {
    ledger,
    env: scratch.env,
    clock: systemClock,
    logger: silentLogger,
    processes: systemProcesses(),
    sandboxRoot: scratch.path("sandboxes"),
    nested,
  };
  return planTasks(ports, names);
}

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(new Error("stopped")), { once: true });
  });
}

test("each way that a task ends is the end of its step", async () => {
  const step = (task: string): StepDefinition => ({
    kind: "task",
    task,
    input: 21,
    id: null,
    name: task,
    timeoutMs: task === "endless" ? 50 : null,
    continueOnError: true,
  });
  const definition: PlanDefinition = {
    name: "p",
    workspace: root,
    base: "head",
    env: {},
    timeoutMs: null,
    execute: ["double", "broken", "endless", "doubel"].map(step),
    apply: [],
  };
  const definitionJson = JSON.stringify(definition);
  await ledger.plans.begin({ jobId: JOB, planId: PLAN, phase: "execute", definitionJson });
  const [execute] = ownTasks();
  const { signal } = new AbortController();
  const ctx = { jobId: formatJobId(JOB), signal } as TaskContext;
  await execute?.definition.run({ planId: PLAN, phase: "execute" }, ctx);
  const run = await runOf(ledger, JOB);
  expect(run?.steps.map(({ state, errorMessage }) => [state, errorMessage])).toEqual([
    ["succeeded", null],
    ["failed", "RangeError: too far"],
    ["timed_out", expect.stringContaining("TimeLimit") as string],
    ["failed", expect.stringContaining("double") as string],
  ]);
});

test("they are called as they are told, and have one attempt", () => {
  expect(ownTasks().map(({ name }) => name)).toEqual(["plan:execute", "plan:apply"]);
  const here = { execute: "plan:execute:1", apply: "plan:apply:1" };
  expect(ownTasks(here)).toMatchObject([
    { name: "plan:execute:1", maxAttempts: 1, graceMs: 61_000 },
    { name: "plan:apply:1", maxAttempts: 1, graceMs: 61_000 },
  ]);
});
