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
import { checkSchema, issuesLine } from "./schema.js";
import type { Stop } from "./stop.js";
import type { TaskOptions } from "./task.js";
import { upgradeInput, versionOf } from "./upgrade.js";

export type TaskEnding = { readonly kind: "succeeded"; readonly resultJson: string } | Failure;

export interface TaskRun extends RunIdentity {
  readonly definition: TaskOptions;
  readonly payloadJson: string;
  readonly stop: Stop;
  readonly reports: Reports;
}

export async function execute(run: TaskRun): Promise<TaskEnding> {
  try {
    return await attempt(run);
  } catch (error) {
    if (!run.stop.isAsked) logStack(run.reports, error);
    return failure(error);
  } finally {
    run.reports.end();
  }
}

async function attempt(run: TaskRun): Promise<TaskEnding> {
  const { definition, stop, reports } = run;
  const decoded = decodePayload(run.payloadJson);
  if (decoded.kind === "unreadable")
    return { kind: "failed", errorMessage: decoded.errorMessage, retry: "never" };
  const { payload } = decoded;
  let { input } = payload;
  const isOther = ![UNSTATED_VERSION, versionOf(definition)].includes(payload.version);
  if (isOther) {
    const upgraded = await upgradeInput(definition, payload);
    if (upgraded.kind === "failed") return upgraded;
    input = upgraded.input;
  }
  const checked = await checkSchema(definition.input, input);
  if (checked.kind === "invalid") {
    const issues = issuesLine(checked.issues);
    return failed("InvalidInput", isOther ? `${origin(payload)}: ${issues}` : issues, "never");
  }
  // It was told to stop before it began: none of the user's code needs to run.
  stop.throwIfAsked();
  const returned = await definition.run(checked.value, contextOf(run, stop, reports));
  const output = await checkSchema(definition.output, returned);
  if (output.kind === "invalid") return failed("InvalidOutput", issuesLine(output.issues));
  return { kind: "succeeded", resultJson: encodeJson(output.value, "result", MAX_RESULT_BYTES) };
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
