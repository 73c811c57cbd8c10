/**
 * The one place where replies leave: headers that every reply carries, the shape of a refusal, and
 * the count of what was answered. Replies are JSON text, or bytes. They go straight to Node: what
 * Fastify would do on the way (hooks, serialising, guessing a type) is not used here. Nor is the
 * `Connection: close` that it adds where it could not take a body: the client might not get to see the
 * answer, so the rest is read away instead, within a bound (drain.ts).
 */
import type { FastifyReply, FastifyRequest } from "fastify";
import type { HttpContext } from "./context.js";
import { drainUnread } from "./drain.js";
import { isHeaderSafe } from "./request-id.js";
import { FAULTS, JSON_TYPE, problemJson, type ErrorShape, type Problem } from "./wire.js";

/** A client that closed the connection before its answer: no standard status, but a count worth having (nginx's 499). */
const CLIENT_GONE = 499;

export interface ReplyOptions {
  /** Left out: JSON. */
  readonly type?: string;
  /** Names and values in turn. */
  readonly headers?: readonly string[];
}

export interface Replies {
  answer(reply: FastifyReply, status: number, body: string | Buffer, options?: ReplyOptions): void;
  refuse(reply: FastifyReply, problem: Problem): void;
  /** Nobody listens any more: forgets the reply and counts it. */
  abandon(reply: FastifyReply): void;
}

/** Below /jobs and /plans errors are `{"error"}`, elsewhere the envelope; also for paths that no route knows. */
export function shapeOf(url: string): ErrorShape {
  return /^\/(?:jobs|plans)(?:[/?#]|$)/.test(url) ? "job" : "envelope";
}

export function createReplies(
  context: Pick<HttpContext, "clock" | "closing" | "metrics">,
): Replies {
  // `closing` is read when it matters.
  const { clock, metrics } = context;
  function count(request: FastifyRequest, status: number): void {
    // Fastify's own request for an undecodable URL carries none of our decorations.
    const entry = request.entry ?? null;
    if (entry === null) metrics.route(request.method, "unmatched").ended(status, 0);
    else
      entry.meter(request.method).ended(status, (clock.monotonicMs() - request.startedMs) / 1_000);
  }

  function answer(
    { request, raw }: FastifyReply,
    status: number,
    body: string | Buffer,
    { type = JSON_TYPE, headers = [] }: ReplyOptions = {},
  ): void {
    const { id, requestId } = request;
    const bytes = Buffer.byteLength(body);
    raw.writeHead(status, [
      "content-type",
      type,
      "cache-control",
      "no-store",
      "x-request-id",
      requestId !== undefined && isHeaderSafe(requestId) ? requestId : id,
      ...headers,
      "content-length",
      String(bytes),
    ]);
    count(request, status);
    // Text that is ASCII leaves without being encoded.
    raw.end(body, bytes === body.length ? "latin1" : "utf8");
    drainUnread(request.raw, context);
  }

  return {
    answer,
    refuse(reply, problem) {
      const { request } = reply;
      const { retryAfterS, allow } = problem;
      const headers: string[] = [];
      if (retryAfterS !== undefined) headers.push("retry-after", String(retryAfterS));
      if (allow !== undefined) headers.push("allow", allow);
      if (problem.fault === "unauthorized")
        headers.push("www-authenticate", 'Bearer realm="jobtable"');
      const shape = request.entry?.shape ?? shapeOf(request.url);
      const requestId = request.requestId ?? request.id;
      const body = problemJson(problem, shape, requestId);
      answer(reply, FAULTS[problem.fault].http, body, { headers });
    },
    abandon(reply) {
      count(reply.request, CLIENT_GONE);
      void reply.hijack();
    },
  };
}
