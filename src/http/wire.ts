/**
 * The words of the wire: how a status is called there, the codes of the envelope, and the bodies
 * built from a job. Everything is made as JSON text, because a result is embedded as it was
 * recorded, without being parsed again.
 */
import { formatJobId, formatPlanId } from "../job/id.js";
import type { AttemptError, Job, Phase } from "../job/job.js";
import { ALL_STATUSES, type Status } from "../job/state.js";

/** status (table) -> state (wire); the compiler asks for a word for every status. */
export const STATES = {
  queued: "pending",
  running: "running",
  succeeded: "done",
  failed: "failed",
  timed_out: "timeout",
  cancelled: "cancelled",
} as const satisfies Record<Status, string>;

export type State = (typeof STATES)[Status];

export const ALL_STATES: readonly State[] = ALL_STATUSES.map((status) => STATES[status]);

const STATUS_OF: ReadonlyMap<string, Status> = new Map(
  ALL_STATUSES.map((status) => [STATES[status], status]),
);

/** The status behind a state's word; undefined for any other text. */
export function statusOf(state: string): Status | undefined {
  return STATUS_OF.get(state);
}

export const JSON_TYPE = "application/json; charset=utf-8";

/**
 * Every way a request can be refused or fail: the envelope's code and sentence, and the HTTP
 * status. Codes 400, 408, 409, 422 and 431 stand beside the published ones for requests that never
 * reached a task: not HTTP, too slow, in conflict with the job's state or with another job's key,
 * headers too large.
 */
export const FAULTS = {
  run_failed: { code: 2, msg: "model run session failed", http: 500 },
  input_empty: { code: 3, msg: "model input empty", http: 400 },
  run_timeout: { code: 4, msg: "model run timeout", http: 504 },
  bad_json: { code: 50, msg: "decode json error", http: 400 },
  invalid_input: { code: 51, msg: "invalid input", http: 422 },
  media_type: { code: 60, msg: "unsupported media type", http: 415 },
  too_large: { code: 61, msg: "request entity too large", http: 413 },
  method: { code: 62, msg: "method not allowed", http: 405 },
  not_found: { code: 63, msg: "not found", http: 404 },
  internal: { code: 64, msg: "internal server error", http: 500 },
  not_ready: { code: 65, msg: "service not ready", http: 503 },
  bad_request: { code: 400, msg: "bad request", http: 400 },
  unauthorized: { code: 401, msg: "unauthorized", http: 401 },
  request_timeout: { code: 408, msg: "request timeout", http: 408 },
  conflict: { code: 409, msg: "conflict", http: 409 },
  key_conflict: { code: 422, msg: "idempotency key conflict", http: 422 },
  too_many: { code: 429, msg: "too many requests", http: 429 },
  headers_too_large: { code: 431, msg: "request header fields too large", http: 431 },
} as const satisfies Record<string, { code: number; msg: string; http: number }>;

export type Fault = keyof typeof FAULTS;

export interface Issue {
  readonly path: string;
  readonly message: string;
}

/** One refusal, before it takes the shape that its path calls for. */
export interface Problem {
  readonly fault: Fault;
  /** What a job endpoint says in `error`; left out: the fault's own sentence. */
  readonly error?: string;
  readonly detail?: string;
  readonly issues?: readonly Issue[];
  /** The names that would have been right. */
  readonly known?: readonly string[];
  /** Why the job is in the state it is in. */
  readonly reason?: string;
  /** The job that is in the way, as people see it. */
  readonly jobId?: string;
  /** Whole seconds, for `Retry-After`. */
  readonly retryAfterS?: number;
  /** For `Allow`. */
  readonly allow?: string;
}

/** `envelope`: synchronous paths. `job`: everything at and below /jobs and /plans. */
export type ErrorShape = "envelope" | "job";

/** The envelope of a success around a result's JSON text. `reqId` is null for a job that no request made. */
export function successJson(reqId: string | null, dataJson: string): string {
  return `{"req_id":${JSON.stringify(reqId)},"code":0,"msg":"success","data":${dataJson}}`;
}

export function problemJson(problem: Problem, shape: ErrorShape, reqId: string): string {
  const { code, msg } = FAULTS[problem.fault];
  const head =
    shape === "envelope"
      ? { req_id: reqId, code, msg, data: null }
      : { error: problem.error ?? msg, code };
  return JSON.stringify({
    ...head,
    detail: problem.detail,
    issues: problem.issues,
    known: problem.known,
    reason: problem.reason,
    job_id: problem.jobId,
    // An inner failure is found again in the log by this id.
    ...(shape === "job" && problem.fault === "internal" ? { req_id: reqId } : {}),
  });
}

/** The answer to an accepted submit. @param jobId as people see it. */
export function acceptedJson(jobId: string, state: State): string {
  return `{"job_id":"${jobId}","state":"${state}","poll_url":"/jobs/${jobId}","result_url":"/jobs/${jobId}/result"}`;
}

/** The answer to an accepted phase of a plan. Ids are as people see them. */
export function planAcceptedJson(accepted: {
  readonly jobId: string;
  readonly planId: string;
  readonly phase: Phase;
  readonly state: State;
}): string {
  const { jobId, planId, phase, state } = accepted;
  const head = { job_id: jobId, plan_id: planId, phase, state };
  return JSON.stringify({
    ...head,
    poll_url: `/jobs/${jobId}`,
    result_url: `/jobs/${jobId}/result`,
  });
}

/** @param nowMs wall time; a ledger's clock may run ahead of it, which must not make a time negative. */
export function jobJson(job: Job, nowMs: number): string {
  const text = JSON.stringify({
    job_id: formatJobId(job.jobId),
    state: STATES[job.status],
    elapsed_ms: Math.max(0, Math.round((job.finishedAtMs ?? nowMs) - job.createdAtMs)),
    status: job.status,
    task: job.task,
    attempt: job.attempt,
    max_attempts: job.maxAttempts,
    priority: job.priority,
    created_at: iso(job.createdAtMs),
    started_at: iso(job.startedAtMs),
    finished_at: iso(job.finishedAtMs),
    worker_id: job.workerId ?? undefined,
    last_heartbeat: iso(job.lastHeartbeatMs),
    plan_id: job.planId === null ? undefined : formatPlanId(job.planId),
    phase: job.phase ?? undefined,
    req_id: job.requestId ?? undefined,
    idempotency_key: job.idempotencyKey ?? undefined,
    cancel_requested: job.cancelRequestedAtMs === null ? undefined : true,
    ...whyJson(job),
    attempt_errors: job.attemptErrors.length === 0 ? undefined : job.attemptErrors.map(attemptJson),
  });
  if (job.progressJson === null) return text;
  return `${text.slice(0, -1)},"progress":${job.progressJson}}`;
}

/** `error` says how the job ended; `reason` why one that goes on (or was cancelled) stands where it stands. */
function whyJson(job: Job): { error?: string; reason?: string } {
  if (job.errorMessage === null) return {};
  return job.status === "failed" || job.status === "timed_out"
    ? { error: job.errorMessage }
    : { reason: job.errorMessage };
}

/** How an attempt before the present one ended. */
function attemptJson({ attempt, workerId, atMs, errorMessage }: AttemptError): object {
  return { attempt, worker_id: workerId, at: iso(atMs), error: errorMessage };
}

function iso(timeMs: number | null): string | undefined {
  return timeMs === null ? undefined : new Date(timeMs).toISOString();
}
