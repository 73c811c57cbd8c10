/**
 * The two forms of `POST /jobs`. A string `task` makes the body `{task, input, ...options}`; without
 * one the body (its `req_id` apart) is the bare input of the default task. The first form wins
 * wherever it can be meant: an input that has a string `task` of its own must stand in `input`.
 */
import { Compile } from "typebox/compile";
import type { SubmitRequest } from "../engine/api.js";
import { MAX_DELAY_MS } from "../job/limits.js";
import { withoutRequestId, type JsonObject } from "./body.js";
import { issuesText, unknownTask } from "./errors.js";
import { readKey } from "./idempotency-key.js";
import { parseTime } from "./run-at.js";
import { JobRequest } from "./schemas.js";
import type { Issue, Problem } from "./wire.js";

export type Submission =
  | { readonly kind: "submission"; readonly request: SubmitRequest }
  | { readonly kind: "refused"; readonly problem: Problem };

const jobRequest = Compile(JobRequest);
const NO_TIME = "must be a time with a zone, as in 2030-01-31T12:00:00Z (RFC 3339)";
const FIELDS = Object.keys(JobRequest.properties);

export interface Submitted {
  readonly body: JsonObject;
  /** What the result will echo. */
  readonly requestId: string;
  /** The header, each time that it was sent. */
  readonly keyHeaders: readonly string[];
  /** Wall time. */
  readonly nowMs: number;
}

/** @param defaultTask of a bare input; null: there is none. */
export function readSubmission(
  { body, requestId, keyHeaders, nowMs }: Submitted,
  defaultTask: string | null,
  tasks: readonly string[],
): Submission {
  const isBare = typeof body["task"] !== "string";
  const read = readKey(keyHeaders, isBare ? undefined : body["idempotency_key"]);
  if (read.kind === "refused") return refusedFor(read.issue);
  const key = read.key === undefined ? {} : { idempotencyKey: read.key };
  if (isBare) {
    if (defaultTask !== null) {
      const request = { task: defaultTask, input: withoutRequestId(body), requestId, ...key };
      return { kind: "submission", request };
    }
    return refused({
      fault: "invalid_input",
      error: 'no task: send {"task": name, "input": {...}}',
      known: tasks,
    });
  }
  if (!jobRequest.Check(body)) return refused(invalidOptions(body, tasks));
  const { task, input = {}, priority, delay_ms, run_at, max_attempts, timeout_ms } = body;
  const runAtMs = run_at === undefined ? undefined : parseTime(run_at);
  if (runAtMs === null) return refusedFor({ path: "run_at", message: NO_TIME });
  if (runAtMs !== undefined && delay_ms !== undefined)
    return refusedFor({ path: "run_at", message: "can't be given together with delay_ms" });
  if (runAtMs !== undefined && runAtMs > nowMs + MAX_DELAY_MS)
    return refusedFor({ path: "run_at", message: "must be at most a year from now" });
  return {
    kind: "submission",
    request: {
      task,
      input,
      requestId,
      ...(priority === undefined ? {} : { priority }),
      ...(delay_ms === undefined ? {} : { delayMs: delay_ms }),
      ...(runAtMs === undefined ? {} : { runAtMs: Math.max(0, runAtMs) }),
      ...(max_attempts === undefined ? {} : { maxAttempts: max_attempts }),
      ...(timeout_ms === undefined ? {} : { timeoutMs: timeout_ms }),
      ...key,
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

function refusedFor(issue: Issue): Submission {
  return refused({ fault: "invalid_input", ...issuesText([issue]) });
}

function refused(problem: Problem): Submission {
  return { kind: "refused", problem };
}
