/** The jobs: submit, look, wait, result, cancel, retry, list. */
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Accepted } from "../../engine/api.js";
import { formatJobId, parseJobId } from "../../job/id.js";
import type { Job } from "../../job/job.js";
import { cleanText, MAX_REQUEST_ID_CHARS } from "../../job/limits.js";
import { readObject } from "../body.js";
import type { HttpContext } from "../context.js";
import { issuesText, refusalProblem } from "../errors.js";
import { readKey } from "../idempotency-key.js";
import {
  jobNotFound,
  notFinished,
  payloadGone,
  retryOfPlan,
  withoutResult,
} from "../job-problems.js";
import { Leaving } from "../leaving.js";
import { listQuery, waitMs } from "../query.js";
import type { Only } from "../paths.js";
import { OPERATIONS } from "../operations.js";
import type { Replies } from "../reply.js";
import type { JobParams, ListQuery, WaitQuery } from "../schemas.js";
import { readSubmission } from "../submission.js";
import { answerCancel } from "./cancel-answer.js";
import { acceptedJson, jobJson, STATES, successJson } from "../wire.js";

const shape = "job" as const;
type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

export function jobRoutes(
  context: HttpContext,
  replies: Replies,
  only: Only,
  defaultTask: string | null,
): void {
  only(
    { url: "/jobs", shape },
    {
      POST: { schema: OPERATIONS.submit, handler: submit(context, replies, defaultTask) },
      GET: { schema: OPERATIONS.list, handler: list(context, replies) },
    },
  );
  only(
    { url: "/jobs/:id", shape },
    {
      GET: { schema: OPERATIONS.show, handler: show(context, replies) },
      DELETE: { schema: OPERATIONS.cancel, handler: cancel(context, replies) },
    },
  );
  only(
    { url: "/jobs/:id/wait", shape },
    { GET: { schema: OPERATIONS.wait, handler: wait(context, replies) } },
  );
  only(
    { url: "/jobs/:id/result", shape },
    { GET: { schema: OPERATIONS.result, handler: result(context, replies) } },
  );
  only(
    { url: "/jobs/:id/retry", shape },
    { POST: { schema: OPERATIONS.retry, handler: retry(context, replies) } },
  );
}

function submit(context: HttpContext, replies: Replies, defaultTask: string | null): Handler {
  const { tasks, clock } = context;
  return async (request, reply) => {
    const read = readObject(request.body);
    if (read.kind === "refused") {
      replies.refuse(reply, read.problem);
      return;
    }
    request.requestId = read.requestId;
    // A body's id as every ledger can keep it: the result will echo this. Others are plain ASCII.
    const kept =
      read.requestId === undefined ? request.id : cleanText(read.requestId, MAX_REQUEST_ID_CHARS);
    const submitted = {
      body: read.body,
      requestId: kept,
      keyHeaders: keyHeaders(request),
      nowMs: clock.nowMs(),
    };
    const submission = readSubmission(submitted, defaultTask, tasks.names);
    // The body may be many megabytes, and is the engine's from here on.
    request.body = undefined;
    if (submission.kind === "refused") {
      replies.refuse(reply, submission.problem);
      return;
    }
    const outcome = await context.engine.submit(submission.request);
    if (outcome.kind !== "accepted") {
      replies.refuse(reply, refusalProblem(outcome, "jobs"));
      return;
    }
    answerAccepted(replies, reply, outcome);
  };
}

/** Each time that it was sent: Node joins those of one name. */
function keyHeaders({ headers, raw: { rawHeaders } }: FastifyRequest): readonly string[] {
  if (headers["idempotency-key"] === undefined) return [];
  return rawHeaders.filter(
    (_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === "idempotency-key",
  );
}

function retry(context: HttpContext, replies: Replies): Handler {
  return async (request, reply) => {
    const jobId = parseJobId(idOf(request));
    const read = readKey(keyHeaders(request), undefined);
    if (read.kind === "refused") {
      replies.refuse(reply, { fault: "invalid_input", ...issuesText([read.issue]) });
      return;
    }
    const options = read.key === undefined ? {} : { idempotencyKey: read.key };
    const outcome =
      jobId === null ? ({ kind: "unknown" } as const) : await context.engine.retry(jobId, options);
    switch (outcome.kind) {
      case "accepted":
        answerAccepted(replies, reply, outcome);
        return;
      case "unknown":
        replies.refuse(reply, jobNotFound(idOf(request)));
        return;
      case "not_finished":
        replies.refuse(reply, notFinished(outcome.job));
        return;
      case "payload_gone":
        replies.refuse(reply, payloadGone(idOf(request)));
        return;
      case "of_plan":
        replies.refuse(reply, retryOfPlan(outcome.job));
        return;
      case "invalid":
      case "full":
      case "not_ready":
      case "key_conflict":
        replies.refuse(reply, refusalProblem(outcome, "jobs"));
        return;
      default:
        outcome satisfies never;
    }
  };
}

function list(context: HttpContext, replies: Replies): Handler {
  const { clock } = context;
  return async (request, reply) => {
    const query = listQuery(request.query as ListQuery);
    if (query.kind === "refused") {
      replies.refuse(reply, query.problem);
      return;
    }
    const { jobs, nextCursor } = await context.engine.list(query.query);
    const nowMs = clock.nowMs();
    const page = jobs.map((job) => jobJson(job, nowMs)).join(",");
    const next = nextCursor === undefined ? "" : `,"next_cursor":"${formatJobId(nextCursor)}"`;
    replies.answer(reply, 200, `{"jobs":[${page}]${next}}`);
  };
}

function show(context: HttpContext, replies: Replies): Handler {
  const { clock } = context;
  return async (request, reply) => {
    const jobId = parseJobId(idOf(request));
    const job = jobId === null ? null : await context.engine.get(jobId);
    answerJob(replies, reply, job, clock.nowMs());
  };
}

function wait(context: HttpContext, replies: Replies): Handler {
  const { clock, waits } = context;
  return async (request, reply) => {
    const jobId = parseJobId(idOf(request));
    if (jobId === null) {
      replies.refuse(reply, jobNotFound(idOf(request)));
      return;
    }
    const leaving = new Leaving(reply.raw);
    waits.add(leaving);
    let job: Job | null;
    try {
      const timeoutMs = waitMs((request.query as WaitQuery).timeout);
      job = await context.engine.wait(jobId, { timeoutMs, until: "change", signal: leaving });
    } finally {
      waits.delete(leaving);
      leaving.release();
    }
    if (leaving.isGone) replies.abandon(reply);
    else answerJob(replies, reply, job, clock.nowMs());
  };
}

function result(context: HttpContext, replies: Replies): Handler {
  return async (request, reply) => {
    const jobId = parseJobId(idOf(request));
    const found = jobId === null ? null : await context.engine.result(jobId);
    if (found === null) {
      replies.refuse(reply, jobNotFound(idOf(request)));
      return;
    }
    const { job, resultJson } = found;
    if (job.status !== "succeeded") {
      replies.refuse(reply, withoutResult(job));
      return;
    }
    if (resultJson === null) throw new Error(`succeeded without a result: ${job.jobId}`);
    replies.answer(reply, 200, successJson(job.requestId, resultJson));
  };
}

function cancel(context: HttpContext, replies: Replies): Handler {
  return async (request, reply) => {
    const jobId = parseJobId(idOf(request));
    const outcome =
      jobId === null ? ({ kind: "unknown" } as const) : await context.engine.cancel(jobId);
    if (outcome.kind === "unknown") {
      replies.refuse(reply, jobNotFound(idOf(request)));
      return;
    }
    answerCancel(replies, reply, outcome);
  };
}

function answerJob(replies: Replies, reply: FastifyReply, job: Job | null, nowMs: number): void {
  if (job === null) replies.refuse(reply, jobNotFound(idOf(reply.request)));
  else replies.answer(reply, 200, jobJson(job, nowMs));
}

function answerAccepted(replies: Replies, reply: FastifyReply, { job, repeated }: Accepted): void {
  const jobId = formatJobId(job.jobId);
  const headers = ["location", `/jobs/${jobId}`];
  if (repeated) headers.push("idempotent-replayed", "true");
  replies.answer(reply, 202, acceptedJson(jobId, STATES[job.status]), { headers });
}

function idOf(request: FastifyRequest): string {
  return (request.params as JobParams).id;
}
