/**
 * From what went wrong to what a client reads. Refusals by the engine and errors of the registry
 * have a place in the table of codes; everything else is a bug or broken I/O: the log gets it
 * whole, the client the registry's sentence and the request's id.
 */
import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import type { SubmitRefusal } from "../engine/api.js";
import type { Issue as InputIssue } from "./wire.js";
import { ERRORS, JobtableError, type ErrorCode } from "../job/errors.js";
import { formatJobId } from "../job/id.js";
import type { LogFields } from "../runtime/logger.js";
import type { HttpContext } from "./context.js";
import { RefusedRequest } from "./body.js";
import type { Replies } from "./reply.js";
import { FAULTS, type Fault, type Problem } from "./wire.js";

/** A ledger that failed over or a disk that was full is rarely back within a second or two. */
const RETRY_AFTER_FAULT_S = 5;
/** A caller mends what it can see; a thousand complaints about one array help nobody. */
const MAX_ISSUES = 20;
const MAX_KNOWN = 100;

/** Where each error of the registry stands in the table of codes. */
const FAULT_OF = {
  ledger_unavailable: "not_ready",
  ledger_refused: "not_ready",
  ledger_missing: "not_ready",
  ledger_older: "not_ready",
  ledger_full: "not_ready",
  ledger_closed: "not_ready",
  ledger_unreadable: "not_ready",
  ledger_newer: "not_ready",
  queue_full: "too_many",
  not_ready: "not_ready",
  invalid_input: "invalid_input",
  key_conflict: "key_conflict",
  unknown_task: "not_found",
  invalid_config: "internal",
  invalid_task: "internal",
  invalid_plan: "invalid_input",
  unknown_plan: "not_found",
  nothing_to_apply: "conflict",
  invalid_workspace: "invalid_input",
  sandbox_failed: "internal",
  outcome_refused: "invalid_input",
  apply_failed: "internal",
  git_failed: "internal",
} as const satisfies Record<ErrorCode, Fault>;

/** @param call `jobs`: what was to be recorded; `sync`: what was to run now. */
export function refusalProblem(refusal: SubmitRefusal, call: "jobs" | "sync"): Problem {
  switch (refusal.kind) {
    case "unknown_task":
      return call === "sync" ? { fault: "not_found" } : unknownTask(refusal.task, refusal.known);
    case "invalid":
      return {
        fault: refusal.empty ? "input_empty" : "invalid_input",
        ...issuesText(refusal.issues),
      };
    case "full":
      return {
        fault: "too_many",
        error: `async queue full (max ${String(refusal.limit)})`,
        retryAfterS: Math.min(60, Math.max(1, Math.ceil(refusal.retryAfterS))),
      };
    case "not_ready":
      return { fault: "not_ready", detail: refusal.reason, retryAfterS: RETRY_AFTER_FAULT_S };
    case "key_conflict":
      return {
        fault: "key_conflict",
        detail: `${JSON.stringify(refusal.key)} belongs to ${formatJobId(refusal.jobId)}, of another task or input`,
      };
    default:
      return refusal satisfies never;
  }
}

export function unknownTask(task: string, known: readonly string[]): Problem {
  return {
    fault: "invalid_input",
    error: `unknown task: ${task}`,
    detail:
      'a string "task" names the task to run; an input that has a "task" of its own goes into "input"',
    known: known.slice(0, MAX_KNOWN),
  };
}

/** The issues, and the same as one sentence. */
export function issuesText(issues: readonly InputIssue[]): {
  detail: string;
  issues: readonly InputIssue[];
} {
  const shown = issues.slice(0, MAX_ISSUES).map(({ path, message }) => ({ path, message }));
  const words = shown.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`));
  if (issues.length > shown.length) words.push(`and ${String(issues.length - shown.length)} more`);
  return { detail: words.join("; "), issues: shown };
}

/** One line of an outage in this time; the next one says how many like it were left out. */
const OUTAGE_LOG_INTERVAL_MS = 10_000;

/** Fastify's error handler: the last stop of everything that was thrown while a request was served. */
export function errorHandler(
  replies: Replies,
  { logger, clock, settings: { requestSizeLimitBytes } }: HttpContext,
): (error: unknown, request: FastifyRequest, reply: FastifyReply) => void {
  let quietUntilMs = -Infinity;
  let unlogged = 0;
  /** An outage refuses every request, often because the disk is full: the log must not be what fills it. */
  const logOutage = (fields: LogFields): void => {
    if (clock.monotonicMs() < quietUntilMs) {
      unlogged += 1;
      return;
    }
    quietUntilMs = clock.monotonicMs() + OUTAGE_LOG_INTERVAL_MS;
    logger.warn({ ...fields, unlogged }, "request refused: the ledger did not answer");
    unlogged = 0;
  };
  return (error, request, reply) => {
    const problem = problemOf(error, requestSizeLimitBytes);
    if (problem.fault === "internal" || problem.fault === "not_ready") {
      const fields = { err: error, request_id: request.id, method: request.method };
      const route = request.entry?.pattern ?? "unmatched";
      if (problem.fault === "internal") logger.error({ ...fields, route }, "request failed");
      else logOutage({ ...fields, route });
    }
    replies.refuse(reply, problem);
  };
}

function problemOf(error: unknown, limitBytes: number): Problem {
  if (error instanceof RefusedRequest) return error.problem;
  if (error instanceof JobtableError) return registryProblem(error);
  if (!isFastifyError(error)) return { fault: "internal" };
  switch (error.code) {
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
      return { fault: "media_type", detail: "send application/json" };
    case "FST_ERR_CTP_BODY_TOO_LARGE":
      return { fault: "too_large", detail: `the limit is ${String(limitBytes)} bytes` };
    case "FST_ERR_VALIDATION":
      return { fault: "invalid_input", ...issuesText(validationIssues(error)) };
    // Aborted while its body was read: nobody will see the answer.
    case "ECONNRESET":
    case "FST_ERR_CTP_INVALID_CONTENT_LENGTH":
      return { fault: "bad_request" };
    default:
      return { fault: "internal" };
  }
}

function registryProblem(error: JobtableError): Problem {
  const { message, retryable } = ERRORS[error.code];
  const fault = FAULT_OF[error.code];
  return {
    fault,
    ...(fault === "internal" || message === FAULTS[fault].msg ? {} : { detail: message }),
    ...(retryable ? { retryAfterS: RETRY_AFTER_FAULT_S } : {}),
  };
}

function isFastifyError(error: unknown): error is FastifyError {
  return error instanceof Error && "code" in error && typeof error.code === "string";
}

/** What Fastify's validation of a query found. */
function validationIssues(error: FastifyError): InputIssue[] {
  return (error.validation ?? []).flatMap((found) => {
    const path = found.instancePath.slice(1).replaceAll("/", ".");
    // Said once more by the complaint about the object as a whole.
    if (found.keyword === "boolean") return [];
    return [{ path, message: found.message ?? "is invalid" }];
  });
}
