/**
 * Paths with a closed list of methods: whatever else is sent to a known path is answered with 405
 * and `Allow`, before its body is read. That includes OPTIONS everywhere (no CORS is offered), and
 * HEAD on all but the service paths, which probes like to ask.
 */
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  FastifySchema,
  onRequestHookHandler,
} from "fastify";
import { METHODS } from "node:http";
import type { Entry, HttpContext } from "./context.js";
import type { HttpMeter } from "./metrics.js";
import type { Replies } from "./reply.js";
import type { ErrorShape, Problem } from "./wire.js";

export interface Call {
  readonly schema: FastifySchema;
  readonly handler: (request: FastifyRequest, reply: FastifyReply) => void | Promise<void>;
}

export interface Path {
  /** As Fastify writes it: `/jobs/:id`. */
  readonly url: string;
  readonly shape: ErrorShape;
  readonly isPublic?: boolean;
  /** Whether it is answered before the engine is there. */
  readonly isEarly?: boolean;
  /** Whether GET answers HEAD too. */
  readonly head?: boolean;
  /** Refuses before the body is read and before the method is judged. */
  readonly precheck?: (request: FastifyRequest) => Problem | null;
}

export type Only = (path: Path, calls: Partial<Record<"GET" | "POST" | "DELETE", Call>>) => void;

/** CONNECT asks for a tunnel; Node closes such connections itself. */
const ALL_METHODS = METHODS.filter((method) => method !== "CONNECT");

/** Makes the router know every method, so that a known path can refuse it. To be called before any path is made. */
export function knowAllMethods(app: FastifyInstance): void {
  const read = new Set(["POST"]);
  for (const method of ALL_METHODS)
    app.addHttpMethod(method, { hasBody: read.has(method), overrideExisting: true });
}

export interface Paths {
  readonly only: Only;
  /** Answers 404 to every method, before a body is read. */
  readonly unknown: (url: string, shape: ErrorShape) => void;
}

/** @param gate judges every request of a path first: who may enter, and whether anyone may at all. */
export function createPaths(
  app: FastifyInstance,
  { metrics }: Pick<HttpContext, "metrics">,
  replies: Replies,
  gate: (entry: Entry) => onRequestHookHandler,
): Paths {
  function entryOf(path: Path, pattern = documented(path.url)): Entry {
    const { shape, isPublic = false, isEarly = false } = path;
    const meter = (method: string): HttpMeter => metrics.route(method, pattern);
    return { pattern, shape, isPublic, isEarly, meter };
  }
  function refuseAll(
    methods: string[],
    url: string,
    problem: Problem,
    before: onRequestHookHandler[],
  ): void {
    const refuse = (_: FastifyRequest, reply: FastifyReply): void => {
      replies.refuse(reply, problem);
    };
    const onRequest = [...before, refuse];
    app.route({ method: methods, url, schema: { hide: true }, onRequest, handler: refuse });
  }

  return {
    only(path, calls) {
      const { url, precheck } = path;
      const onRequest = [gate(entryOf(path))];
      if (precheck !== undefined)
        onRequest.push((request, reply, done) => {
          const problem = precheck(request);
          if (problem === null) done();
          else replies.refuse(reply, problem);
        });
      const allowed: string[] = [];
      for (const [method, { schema, handler }] of Object.entries(calls)) {
        app.route({ method, url, schema, onRequest, handler });
        allowed.push(method);
        if (method !== "GET" || path.head !== true) continue;
        app.route({ method: "HEAD", url, schema: { hide: true }, onRequest, handler });
        allowed.push("HEAD");
      }
      const others = ALL_METHODS.filter((method) => !allowed.includes(method));
      refuseAll(others, url, { fault: "method", allow: allowed.join(", ") }, onRequest);
    },
    unknown(url, shape) {
      const onRequest = [gate(entryOf({ url, shape }, "unmatched"))];
      refuseAll([...ALL_METHODS], url, { fault: "not_found" }, onRequest);
    },
  };
}

function documented(url: string): string {
  return url.replaceAll(/:(\w+)/g, "{$1}");
}
