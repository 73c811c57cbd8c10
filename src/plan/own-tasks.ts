/**
 * The tasks behind plans: a worker that has them runs phases like any job. Nobody can submit them but
 * `Plans`, which holds that a plan runs one phase at a time.
 */
import { nestedRun, type NestedRunPorts } from "../engine/nested-run.js";
import type { RunReports } from "../engine/runner/runner.js";
import type { Phase } from "../job/job.js";
import { PLAN_TASKS, type PlanInput } from "../job/payload.js";
import type { TaskContext } from "../task/task.js";
import type { RegisteredTask } from "../task/registry.js";
import { PhaseRunner, type PhasePorts } from "./phase-runner.js";
import type { TaskPort, TaskRunEnding } from "./steps/api.js";

/** After a step was told to stop and killed: taking a large patch back from a slow disk. */
const TAKE_BACK_MS = 60_000;

export interface PlanTasksPorts extends Omit<PhasePorts, "tasks" | "graceMs"> {
  /** Of steps that run a task; the runner is the engine's own. */
  readonly nested: NestedRunPorts;
}

/** @param names of the tasks; others than the usual ones are claimed by no other process. */
export function planTasks(
  ports: PlanTasksPorts,
  names: Readonly<Record<Phase, string>> = PLAN_TASKS,
): RegisteredTask[] {
  const graceMs = ports.nested.settings.cancelGraceMs;
  const runner = new PhaseRunner({ ...ports, graceMs, tasks: taskPort(ports.nested) });
  return Object.values(names).map((name) => ({
    name,
    description: null,
    isolation: "inline",
    timeoutMs: null,
    maxAttempts: 1,
    graceMs: graceMs + TAKE_BACK_MS,
    version: 1,
    file: null,
    // The engine gives a job of these tasks the input that its payload has.
    definition: { run: (input: unknown, ctx: TaskContext) => runner.run(input as PlanInput, ctx) },
  }));
}

/** A step has its log; what its task reports besides is nobody's. */
const DEAF: RunReports = { onProgress: () => undefined, onLog: () => undefined };

function taskPort(ports: NestedRunPorts): TaskPort {
  return {
    async run(task, input, { signal, timeoutMs }): Promise<TaskRunEnding> {
      if (ports.tasks.get(task) === undefined)
        return { kind: "unknown_task", known: ports.tasks.names };
      const request = { task, input, requestId: null, limitMs: timeoutMs, signal, listener: DEAF };
      const outcome = await nestedRun(ports, request);
      switch (outcome.kind) {
        case "succeeded":
        case "failed":
        case "timed_out":
          return outcome;
        case "stopped":
          return { kind: "cancelled" };
        default:
          return outcome satisfies never;
      }
    },
  };
}
