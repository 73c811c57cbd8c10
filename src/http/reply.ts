/**
 * The one place where replies leave: headers that every reply carries, the shape of a refusal, and
 * the count of what was answered. Replies are JSON text, or bytes; Fastify serialises nothing.
 */
import type { FastifyReply, FastifyRequest } from "fastify";
import type { HttpContext } from "./context.js";
import { drainUnread } from "./drain.js";
import { isHeaderSafe } from "./request-id.js";
import { FAULTS, JSON_TYPE, problemJson, type ErrorShape, type Problem } from "./wire.js";

/** A client that closed the connection before its answer: no standard status, but a count worth having (nginx's 499). */
const CLIENT_GONE = 499;

export interface Replies {
  /** @param type left out: JSON. */
  answer(reply: FastifyReply, status: number, body: string | Buffer, type?: string): void;
  refuse(reply: FastifyReply, problem: Problem): void;
  /** Nobody listens any more: forgets the reply and counts it. */
  abandon(reply: FastifyReply): void;
}

/** Below /jobs and /plans errors are `{"error"}`, elsewhere the envelope; also for paths that no route knows. */
export function shapeOf(url: string): ErrorShape {
  return /^\/(?:jobs|plans)(?:[/?#]|$)/.test(url) ? "job" : "envelope";
}

export function createReplies({ clock, metrics }: Pick<HttpContext, "clock" | "metrics">): Replies {
  function count(request: FastifyRequest, status: number): void {
    // Fastify's own request for an undecodable URL carries none of our decorations.
    const entry = request.entry ?? null;
    if (entry === null) metrics.route(request.method, "unmatched").ended(status, 0);
    else
      entry.meter(request.method).ended(status, (clock.monotonicMs() - request.startedMs) / 1_000);
  }

  function answer(
    reply: FastifyReply,
    status: number,
    body: string | Buffer,
    type = JSON_TYPE,
  ): void {
    const { request } = reply;
    const { id, requestId } = request;
    void reply
      .code(status)
      .header("content-type", type)
      .header("cache-control", "no-store")
      .header("x-request-id", requestId !== undefined && isHeaderSafe(requestId) ? requestId : id);
    count(request, status);
    void reply.send(body);
    drainUnread(request.raw, clock);
  }

  return {
    answer,
    refuse(reply, problem) {
      const { request } = reply;
      const { retryAfterS, allow } = problem;
      if (retryAfterS !== undefined) void reply.header("retry-after", String(retryAfterS));
      if (allow !== undefined) void reply.header("allow", allow);
      if (problem.fault === "unauthorized")
        void reply.header("www-authenticate", 'Bearer realm="jobtable"');
      const shape = request.entry?.shape ?? shapeOf(request.url);
      const requestId = request.requestId ?? request.id;
      answer(reply, FAULTS[problem.fault].http, problemJson(problem, shape, requestId));
    },
    abandon(reply) {
      count(reply.request, CLIENT_GONE);
      void reply.hijack();
    },
  };
}
