/**
 * The HTTP API, typed. It keeps no connection state and no timers: each call is one request, but for
 * long lists.
 */
import { ALL_STATES, type State } from "../http/wire.js";
import { parseJobId } from "../job/id.js";
import type {
  Accepted,
  CancelAnswer,
  Jobs,
  JobsQuery,
  ResultAnswer,
  RetryAnswer,
  RetryOptions,
  SubmitAnswer,
  SubmitRequest,
} from "./jobs.js";
import {
  refusedFrom,
  type DiagnosticsView,
  type JobPageView,
  type JobView,
  type Refused,
} from "./replies.js";
import { Transport, type Call, type Reply, type TransportOptions } from "./transport.js";

/** What a server gives at once; longer lists are asked for in pages. */
const PAGE = 200;
/** Proxies drop what is silent for a minute. */
const LONGEST_POLL_MS = 50_000;

/**
 * A server's jobs. What is expected is answered, refusals too; a call rejects with a `ClientError`
 * where nothing answers, the server can't work, the token is wrong, or what answers is no jobtable.
 * A call that was rejected may have been heard: send it again with its idempotency key.
 */
export class JobtableClient implements Jobs {
  readonly #transport: Transport;

  /** @throws ClientError where `server` is no http address. */
  constructor(options: TransportOptions) {
    this.#transport = new Transport(options);
  }

  /** Records a job. Answers when it is on disk, or why it was refused. */
  async submit(request: SubmitRequest): Promise<SubmitAnswer> {
    const call: Call = { method: "POST", path: "jobs", body: submitBody(request) };
    return this.#accepted(call, await this.#transport.send(call));
  }

  /** One look; null where unknown. */
  async get(jobId: string): Promise<JobView | null> {
    return this.#job({ method: "GET", path: jobPath(jobId) });
  }

  /**
   * Answers as soon as the state differs from the one at entry, at once for a job that has ended; else
   * when `timeoutMs` has passed, or 50 s, which is what proxies let pass. Null where unknown. So wait in
   * a loop until `hasEnded`.
   */
  async wait(jobId: string, timeoutMs: number): Promise<JobView | null> {
    const extraMs = Math.min(Math.max(1, Math.ceil(timeoutMs)), LONGEST_POLL_MS);
    const path = `${jobPath(jobId)}/wait?timeout=${extraMs}`;
    return this.#job({ method: "GET", path, extraMs });
  }

  /** What the task returned, or why there is nothing. As often as asked, while the job is kept. */
  async result(jobId: string): Promise<ResultAnswer> {
    const call: Call = { method: "GET", path: `${jobPath(jobId)}/result` };
    const reply = await this.#transport.send(call);
    if (isUnknownJob(reply)) return { kind: "unknown" };
    if (reply.status === 200) return { kind: "done", envelopeJson: reply.text };
    return this.#refused(call, reply);
  }

  /** Ends a job that waits; tells one that runs to stop, and its worker records the end. */
  async cancel(jobId: string): Promise<CancelAnswer> {
    const call: Call = { method: "DELETE", path: jobPath(jobId) };
    const reply = await this.#transport.send(call);
    if (isUnknownJob(reply)) return { kind: "unknown" };
    const { job_id: id, state } = reply.body;
    if (reply.status >= 300 || !isJobId(id) || !isState(state)) return this.#refused(call, reply);
    return { kind: reply.status === 200 ? "cancelled" : "requested", jobId: id, state };
  }

  /** Runs once more what has ended, as a new job with the same input and options. */
  async retry(jobId: string, { idempotencyKey }: RetryOptions = {}): Promise<RetryAnswer> {
    const path = `${jobPath(jobId)}/retry`;
    const headers = idempotencyKey === undefined ? {} : keyHeader(idempotencyKey);
    if (headers === null) return UNSENDABLE_KEY;
    const call: Call = { method: "POST", path, headers };
    const reply = await this.#transport.send(call);
    return isUnknownJob(reply) ? { kind: "unknown" } : this.#accepted(call, reply);
  }

  /** Newest first, up to `limit`, however many requests that takes. */
  async list({ limit, cursor, states, task, plan }: JobsQuery): Promise<JobPageView> {
    const jobs: JobView[] = [];
    let next = cursor;
    do {
      const query = new URLSearchParams({ limit: String(Math.min(PAGE, limit - jobs.length)) });
      if (next !== undefined) query.set("cursor", next);
      if (states !== undefined) query.set("state", states.join(","));
      if (task !== undefined) query.set("task", task);
      if (plan !== undefined) query.set("plan", plan);
      const page = await this.#page({ method: "GET", path: `jobs?${query.toString()}` });
      jobs.push(...page.jobs);
      next = page.next_cursor;
    } while (next !== undefined && jobs.length < limit);
    return next === undefined ? { jobs } : { jobs, next_cursor: next };
  }

  /** Whether a worker that lives runs the job's task. The API tells of workers with all the rest. */
  async isServed({ task }: JobView): Promise<boolean> {
    const { workers } = await this.diagnose();
    return workers.some(({ state, tasks }) => state === "running" && tasks.includes(task));
  }

  /** How things stand, and what is wrong: `GET /diagnostics`. */
  async diagnose(): Promise<DiagnosticsView> {
    const call: Call = { method: "GET", path: "diagnostics" };
    const reply = await this.#transport.send(call);
    if (reply.status !== 200 || !isDiagnostics(reply.body))
      throw this.#transport.unexpected(call, reply);
    return reply.body;
  }

  async #page(call: Call): Promise<JobPageView> {
    const reply = await this.#transport.send(call);
    if (reply.status !== 200 || !isPage(reply.body)) throw this.#transport.unexpected(call, reply);
    return reply.body;
  }

  async #job(call: Call): Promise<JobView | null> {
    const reply = await this.#transport.send(call);
    if (isUnknownJob(reply)) return null;
    if (reply.status !== 200 || !isJob(reply.body)) throw this.#transport.unexpected(call, reply);
    return reply.body;
  }

  #accepted(call: Call, reply: Reply): Accepted | Refused {
    const { job_id: jobId } = reply.body;
    if (reply.status !== 202 || !isJobId(jobId)) return this.#refused(call, reply);
    const repeated = reply.headers.get("idempotent-replayed") === "true";
    return { kind: "accepted", jobId, repeated };
  }

  #refused(call: Call, reply: Reply): Refused {
    const { status, body, headers } = reply;
    if (status < 400 || typeof body["error"] !== "string" || isNoSuchPath(reply))
      throw this.#transport.unexpected(call, reply);
    const retryAfter = Number(headers.get("retry-after") ?? NaN);
    return refusedFrom(status, body, Number.isFinite(retryAfter) ? retryAfter : null);
  }
}

function jobPath(jobId: string): string {
  return `jobs/${encodeURIComponent(jobId)}`;
}

const UNSENDABLE_KEY: Refused = {
  kind: "refused",
  status: 422,
  message: "invalid input: Idempotency-Key: must be ASCII",
  retryAfterS: null,
};

/** As a quoted string (RFC 8941), which no proxy trims; null for what can't stand in a header. */
function keyHeader(key: string): Readonly<Record<string, string>> | null {
  if (!/^[ -~]*$/.test(key)) return null;
  return { "idempotency-key": `"${key.replaceAll(/["\\]/g, "\\$&")}"` };
}

function submitBody(request: SubmitRequest): Readonly<Record<string, unknown>> {
  const { task, input, requestId, idempotencyKey, priority } = request;
  const { delayMs, runAtMs, maxAttempts, timeoutMs } = request;
  return {
    task,
    input,
    req_id: requestId,
    idempotency_key: idempotencyKey,
    priority,
    delay_ms: delayMs,
    run_at: runAtMs === undefined ? undefined : new Date(runAtMs).toISOString(),
    max_attempts: maxAttempts,
    timeout_ms: timeoutMs,
  };
}

/** A server with its jobs turned off, an older one, or something else has no such path. */
function isNoSuchPath({ status, body }: Reply): boolean {
  return status === 404 && !isAboutJob(body);
}

function isUnknownJob({ status, body }: Reply): boolean {
  return status === 404 && isAboutJob(body);
}

function isAboutJob({ error }: Reply["body"]): boolean {
  return typeof error === "string" && error.startsWith("job not found");
}

/** Ids and cursors are printed as they come: nothing else may pass for one. */
function isJobId(value: unknown): value is string {
  return typeof value === "string" && parseJobId(value) !== null;
}

function isState(value: unknown): value is State {
  return ALL_STATES.some((state) => state === value);
}

/** As far as it takes to tell a job from another server's JSON. */
function isJob(body: object): body is JobView {
  return "job_id" in body && isJobId(body.job_id) && "state" in body && isState(body.state);
}

function isPage(body: object): body is JobPageView {
  return (
    "jobs" in body &&
    Array.isArray(body.jobs) &&
    body.jobs.every((job) => typeof job === "object" && job !== null && isJob(job as object)) &&
    (!("next_cursor" in body) || isJobId(body.next_cursor))
  );
}

function isDiagnostics(body: object): body is DiagnosticsView {
  return "problems" in body && Array.isArray(body.problems) && "depth" in body;
}
