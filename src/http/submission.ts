/**
 * The two forms of `POST /jobs`. A string `task` makes the body `{task, input, ...options}`; without
 * one the body (its `req_id` apart) is the bare input of the default task. The first form wins
 * wherever it can be meant: an input that has a string `task` of its own must stand in `input`.
 */
import { Compile } from "typebox/compile";
import type { SubmitRequest } from "../engine/api.js";
import { withoutRequestId, type JsonObject } from "./body.js";
import { issuesText, unknownTask } from "./errors.js";
import { JobRequest } from "./schemas.js";
import type { Issue, Problem } from "./wire.js";

export type Submission =
  | { readonly kind: "submission"; readonly request: SubmitRequest }
  | { readonly kind: "refused"; readonly problem: Problem };

const jobRequest = Compile(JobRequest);
const FIELDS = Object.keys(JobRequest.properties);

/**
 * @param requestId what the result will echo.
 * @param defaultTask of a bare input; null: there is none.
 */
export function readSubmission(
  body: JsonObject,
  requestId: string,
  defaultTask: string | null,
  tasks: readonly string[],
): Submission {
  if (typeof body["task"] !== "string") {
    if (defaultTask !== null) {
      const request = { task: defaultTask, input: withoutRequestId(body), requestId };
      return { kind: "submission", request };
    }
    return refused({
      fault: "invalid_input",
      error: 'no task: send {"task": name, "input": {...}}',
      known: tasks,
    });
  }
  if (!jobRequest.Check(body)) return refused(invalidOptions(body, tasks));
  const { task, input = {}, priority, delay_ms, max_attempts, timeout_ms } = body;
  return {
    kind: "submission",
    request: {
      task,
      input,
      requestId,
      ...(priority === undefined ? {} : { priority }),
      ...(delay_ms === undefined ? {} : { delayMs: delay_ms }),
      ...(max_attempts === undefined ? {} : { maxAttempts: max_attempts }),
      ...(timeout_ms === undefined ? {} : { timeoutMs: timeout_ms }),
    },
  };
}

function invalidOptions(body: JsonObject, tasks: readonly string[]): Problem {
  const task = String(body["task"]);
  // More often than not a bare input that happens to have a `task`.
  if (!tasks.includes(task)) return unknownTask(task, tasks);
  const unknown = Object.keys(body).filter((field) => !FIELDS.includes(field));
  const issues: Issue[] = unknown.map((path) => ({ path, message: "unknown field" }));
  for (const { instancePath, message } of jobRequest.Errors(body)) {
    const path = instancePath.slice(1);
    if (path !== "" && !unknown.includes(path)) issues.push({ path, message });
  }
  return {
    fault: "invalid_input",
    ...issuesText(issues),
    ...(unknown.length > 0 ? { known: FIELDS } : {}),
  };
}

function refused(problem: Problem): Submission {
  return { kind: "refused", problem };
}
