/**
 * Routes with a closed list of methods: whatever else is sent to a known path is answered with 405
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
  /** Whether GET answers HEAD too. */
  readonly head?: boolean;
  /** Refuses before the body is read and before the method is judged. */
  readonly precheck?: (request: FastifyRequest) => Problem | null;
}

export type Only = (path: Path, calls: Partial<Record<"GET" | "POST" | "DELETE", Call>>) => void;

/** CONNECT asks for a tunnel; Node closes such connections itself. */
const ALL_METHODS = METHODS.filter((method) => method !== "CONNECT");

/** Makes the router know every method, so that a known path can refuse it. To be called before `only`. */
export function knowAllMethods(app: FastifyInstance): void {
  const read = new Set(["POST"]);
  for (const method of ALL_METHODS)
    app.addHttpMethod(method, { hasBody: read.has(method), overrideExisting: true });
}

/** @param gate judges every request of a path first: who may enter, and whether anyone may at all. */
export function createOnly(
  app: FastifyInstance,
  { metrics }: Pick<HttpContext, "metrics">,
  replies: Replies,
  gate: (entry: Entry) => onRequestHookHandler,
): Only {
  return (path, calls) => {
    const pattern = path.url.replaceAll(/:(\w+)/g, "{$1}");
    const entry: Entry = {
      pattern,
      shape: path.shape,
      isPublic: path.isPublic ?? false,
      meter: (method) => metrics.route(method, pattern),
    };
    const { precheck } = path;
    const onRequest = [gate(entry)];
    if (precheck !== undefined)
      onRequest.push((request, reply, done) => {
        const problem = precheck(request);
        if (problem === null) done();
        else replies.refuse(reply, problem);
      });

    const allowed: string[] = [];
    for (const [method, { schema, handler }] of Object.entries(calls)) {
      app.route({ method, url: path.url, schema, onRequest, handler });
      allowed.push(method);
      if (method !== "GET" || path.head !== true) continue;
      app.route({ method: "HEAD", url: path.url, schema: { hide: true }, onRequest, handler });
      allowed.push("HEAD");
    }
    const problem: Problem = { fault: "method", allow: allowed.join(", ") };
    const refuse = (_: FastifyRequest, reply: FastifyReply): void => {
      replies.refuse(reply, problem);
    };
    app.route({
      method: ALL_METHODS.filter((method) => !allowed.includes(method)),
      url: path.url,
      schema: { hide: true },
      onRequest: [...onRequest, refuse],
      handler: refuse,
    });
  };
}
