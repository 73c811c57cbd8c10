/**
 * One run of a handler, from the recorded payload to the result's text, wherever it takes place.
 * Whatever the handler does, the answer is an ending: it never rejects. It may never settle, if the
 * handler doesn't; ending that is the runner's part.
 */
import { MAX_RESULT_BYTES } from "../job/limits.js";
import { decodePayload, UNSTATED_VERSION, type Payload } from "../job/payload.js";
import { retryWish } from "./errors.js";
import { failed, failure, stackOf, type Failure } from "./failure.js";
import { encodeJson } from "./json.js";
import { contextOf, type RunIdentity } from "./context.js";
import type { Reports } from "./reports.js";
import { checkSchema, isThenable, issuesLine, type SchemaCheck } from "./schema.js";
import type { Stop } from "./stop.js";
import type { TaskOptions } from "./task.js";
import { upgradeInput, versionOf, type UpgradedInput } from "./upgrade.js";

export type TaskEnding = { readonly kind: "succeeded"; readonly resultJson: string } | Failure;

export interface TaskRun extends RunIdentity {
  readonly definition: TaskOptions;
  readonly payloadJson: string;
  readonly stop: Stop;
  readonly reports: Reports;
}

/** What can be had at once is not waited for: each wait costs more than all else of a tiny run. */
export async function execute(run: TaskRun): Promise<TaskEnding> {
  const { definition, stop, reports } = run;
  try {
    const reading = readInput(run);
    const ready = reading instanceof Promise ? await reading : reading;
    if (ready.kind === "failed") return ready;
    // It was told to stop before it began: none of the user's code needs to run.
    stop.throwIfAsked();
    const returning: unknown = definition.run(ready.input, contextOf(run, stop, reports));
    const returned = isThenable(returning) ? await returning : returning;
    const checking = checkSchema(definition.output, returned);
    const output = checking instanceof Promise ? await checking : checking;
    if (output.kind === "invalid") return failed("InvalidOutput", issuesLine(output.issues));
    return { kind: "succeeded", resultJson: encodeJson(output.value, "result", MAX_RESULT_BYTES) };
  } catch (error) {
    if (!stop.isAsked) logStack(reports, error);
    return failure(error);
  } finally {
    reports.end();
  }
}

/** The input as the handler takes it: of its present version, and what its schema made of it. */
function readInput(run: TaskRun): UpgradedInput | Promise<UpgradedInput> {
  const decoded = decodePayload(run.payloadJson);
  if (decoded.kind === "unreadable")
    return { kind: "failed", errorMessage: decoded.errorMessage, retry: "never" };
  const { definition } = run;
  const { payload } = decoded;
  const { version, input } = payload;
  if (version !== UNSTATED_VERSION && version !== versionOf(definition))
    return upgradedInput(definition, payload);
  const checking = checkSchema(definition.input, input);
  if (checking instanceof Promise) return checking.then((checked) => inputOf(checked, ""));
  return inputOf(checking, "");
}

async function upgradedInput(definition: TaskOptions, payload: Payload): Promise<UpgradedInput> {
  const upgraded = await upgradeInput(definition, payload);
  if (upgraded.kind === "failed") return upgraded;
  return inputOf(await checkSchema(definition.input, upgraded.input), `${origin(payload)}: `);
}

/** @param origin stands before what is wrong. */
function inputOf(checked: SchemaCheck, origin: string): UpgradedInput {
  if (checked.kind === "valid") return { kind: "input", input: checked.value };
  return failed("InvalidInput", origin + issuesLine(checked.issues), "never");
}

/** Who mends an upgrader must know that it was one that made this input. */
function origin({ task, version }: Payload): string {
  return `task "${task}", input brought up from version ${String(version)}`;
}

/** The record takes the message alone; who mends the handler needs the stack. */
function logStack(reports: Reports, error: unknown): void {
  try {
    if (retryWish(error) !== "default") return;
  } catch {
    // A hostile getter: an error like any other.
  }
  const stack = stackOf(error);
  if (stack !== null) reports.log("warn", "the handler threw", { stack: stack.slice(0, 3_000) });
}
