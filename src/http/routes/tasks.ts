/** The synchronous path: a task runs now, on the pool that the jobs share, and the reply is its envelope. */
import type { FastifyReply, FastifyRequest } from "fastify";
import { readObject, withoutRequestId } from "../body.js";
import type { HttpContext } from "../context.js";
import { refusalProblem } from "../errors.js";
import { Leaving } from "../leaving.js";
import type { Only } from "../paths.js";
import { OPERATIONS } from "../operations.js";
import type { Replies } from "../reply.js";
import type { TaskParams } from "../schemas.js";
import { successJson } from "../wire.js";

export function taskRoutes(context: HttpContext, replies: Replies, only: Only): void {
  const { tasks } = context;
  const taskOf = (request: FastifyRequest): string => (request.params as TaskParams).task;
  only(
    {
      url: "/tasks/:task",
      shape: "envelope",
      precheck: (request) =>
        tasks.get(taskOf(request)) === undefined ? { fault: "not_found" } : null,
    },
    {
      POST: {
        schema: OPERATIONS.run,
        handler: (request, reply) => run(context, replies, taskOf(request), request, reply),
      },
    },
  );

  const [onlyTask, ...others] = tasks.names;
  if (onlyTask === undefined || others.length > 0) return;
  only(
    { url: "/", shape: "envelope" },
    {
      POST: {
        schema: OPERATIONS.runOnly,
        handler: (request, reply) => run(context, replies, onlyTask, request, reply),
      },
    },
  );
}

async function run(
  context: HttpContext,
  replies: Replies,
  task: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const read = readObject(request.body);
  if (read.kind === "refused") {
    replies.refuse(reply, read.problem);
    return;
  }
  request.requestId = read.requestId;
  const requestId = read.requestId ?? request.id;
  const input = withoutRequestId(read.body);
  // The body may be many megabytes, and is the task's from here on.
  request.body = undefined;
  const signal = new Leaving(reply.raw);
  try {
    const outcome = await context.engine.run({ task, input, requestId, signal });
    if (signal.isGone) {
      replies.abandon(reply);
      return;
    }
    switch (outcome.kind) {
      case "done":
        replies.answer(reply, 200, successJson(requestId, outcome.resultJson));
        return;
      case "failed":
        replies.refuse(reply, { fault: "run_failed", detail: outcome.errorMessage });
        return;
      case "timeout":
        replies.refuse(reply, {
          fault: "run_timeout",
          detail: `the limit is ${String(outcome.limitMs)} ms, the wait for a worker included`,
        });
        return;
      case "cancelled":
        // Not by this client, which is still there: the server is going down.
        replies.refuse(reply, {
          fault: "not_ready",
          detail: "the run was stopped",
          retryAfterS: 5,
        });
        return;
      case "unknown_task":
      case "invalid":
      case "full":
      case "not_ready":
        replies.refuse(reply, refusalProblem(outcome, "sync"));
        return;
      default:
        outcome satisfies never;
    }
  } finally {
    signal.release();
  }
}
