/** A step that runs a task, through a port: how tasks are run is not known here. */
import type { TaskStep } from "../definition.js";
import { Evaluation } from "./evaluate.js";
import type { StepEnd, StepsContext } from "./step-end.js";

const MAX_KNOWN = 20;

/** @throws StepFailure, or what the port rejects with. */
export async function runTaskStep(step: TaskStep, context: StepsContext): Promise<StepEnd> {
  const { dir, plan, outputs, signal, tasks } = context;
  const evaluation = new Evaluation({ workspace: dir, planName: plan.name, outputs });
  const input = evaluation.json(step.input);
  const ending = await tasks.run(step.task, input, { signal, timeoutMs: step.timeoutMs });
  outputs.keepTask(step.id, ending.kind === "succeeded" ? ending.resultJson : null);
  switch (ending.kind) {
    case "succeeded":
      return signal.aborted ? { state: "cancelled" } : { state: "succeeded" };
    case "failed":
    case "timed_out":
      return { state: ending.kind, errorMessage: ending.errorMessage };
    case "cancelled":
      return { state: "cancelled" };
    case "unknown_task":
      return { state: "failed", errorMessage: unknownTask(step.task, ending.known) };
    default:
      return ending satisfies never;
  }
}

function unknownTask(task: string, known: readonly string[]): string {
  const more = known.length > MAX_KNOWN ? ", …" : "";
  const names = known.length === 0 ? "none" : known.slice(0, MAX_KNOWN).join(", ") + more;
  return `UnknownTask: no task is named ${task}; known here: ${names}`;
}
