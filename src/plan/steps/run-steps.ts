/**
 * Runs the steps of a phase, one after the other, until one fails or the run is aborted. Knows
 * nothing of jobs and repositories: it is given a folder, and tells a listener what happens.
 *
 * A step ends in exactly one record. What goes wrong with a step is its end, never a rejection: that
 * would be a fault of the listener, or of the folder itself.
 */
import { realpath } from "node:fs/promises";
import { cleanText, MAX_ERROR_CHARS } from "../../job/limits.js";
import type { StepDefinition } from "../definition.js";
import type { EndedStep, StartedStep, StepsEnding, StepsRequest } from "./api.js";
import { runCommandStep } from "./command-step.js";
import { StepFailure } from "./step-failure.js";
import type { StepEnd, StepsContext } from "./step-end.js";
import { StepOutputs } from "./step-outputs.js";
import { runTaskStep } from "./task-step.js";

/** Resolves when nothing of the steps is left running. Rejects where `dir` is not there. */
export async function runSteps(request: StepsRequest): Promise<StepsEnding> {
  const { steps, signal, listener } = request;
  const context: StepsContext = {
    ...request,
    dir: await realpath(request.dir),
    outputs: new StepOutputs(),
  };
  let ending: StepsEnding = signal.aborted ? { kind: "cancelled" } : { kind: "succeeded" };
  for (const [index, step] of steps.entries()) {
    const ended =
      ending.kind === "succeeded" ? await runStep(step, index, context) : skipped(step, index);
    listener.stepEnded(ended);
    if (ending.kind === "succeeded") ending = endingAfter(ended, step, request);
  }
  return ending;
}

async function runStep(
  step: StepDefinition,
  index: number,
  context: StepsContext,
): Promise<EndedStep> {
  const { clock, listener, logger, outputs } = context;
  const started: StartedStep = { ...placeOf(step, index), startedAtMs: clock.nowMs() };
  listener.stepStarted(started);
  logger.debug({ step: index, name: step.name }, "step started");
  let end: StepEnd;
  try {
    end = await (step.kind === "command"
      ? runCommandStep(step, started, context)
      : runTaskStep(step, context));
  } catch (error) {
    if (!(error instanceof StepFailure))
      logger.error({ err: error, step: index, name: step.name }, "a step could not be run");
    outputs.keepNothing(step.id, "it could not be started");
    end = { state: "failed", errorMessage: messageOf(error) };
  }
  const errorMessage = end.errorMessage ?? null;
  logger.debug({ step: index, state: end.state }, "step ended");
  return {
    exitCode: null,
    signal: null,
    log: "",
    logBytes: 0,
    ...started,
    ...end,
    errorMessage: errorMessage === null ? null : cleanText(errorMessage, MAX_ERROR_CHARS),
    finishedAtMs: clock.nowMs(),
  };
}

function endingAfter(
  ended: EndedStep,
  { continueOnError }: StepDefinition,
  { signal, steps }: StepsRequest,
): StepsEnding {
  if (signal.aborted || ended.state === "cancelled") return { kind: "cancelled" };
  if (ended.state === "succeeded" || continueOnError) return { kind: "succeeded" };
  const which = `step ${ended.index + 1} of ${steps.length} (${ended.name})`;
  const errorMessage = `StepFailed: ${which}: ${ended.errorMessage ?? ended.state}`;
  return { kind: "failed", step: ended, errorMessage: cleanText(errorMessage, MAX_ERROR_CHARS) };
}

function skipped(step: StepDefinition, index: number): EndedStep {
  return {
    ...placeOf(step, index),
    state: "skipped",
    exitCode: null,
    signal: null,
    startedAtMs: null,
    finishedAtMs: null,
    errorMessage: null,
    log: "",
    logBytes: 0,
  };
}

function placeOf(step: StepDefinition, index: number): Omit<StartedStep, "startedAtMs"> {
  return { index, id: step.id, name: step.name, kind: step.kind };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : `Error: ${String(error)}`;
}
