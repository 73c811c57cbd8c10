/**
 * The HTTP app: the contract of the wire on Fastify. It holds no state of its own but the waits
 * under way. Every reply, also to what is not HTTP, is JSON in one of two shapes. Closing it lets
 * requests under way finish, ends waits with what they know, and answers newcomers on open
 * connections with 503.
 *
 * It may listen before the engine is there, while a database server is waited for: then the process
 * is alive (/healthz), not ready, and everything else is answered with 503.
 */
import swagger from "@fastify/swagger";
import { TypeBoxValidatorCompiler } from "@fastify/type-provider-typebox";
import fastify, {
  type FastifyInstance,
  type FastifyRequest,
  type onRequestHookHandler,
} from "fastify";
import type { Engine } from "../engine/api.js";
import { JobtableError } from "../job/errors.js";
import { systemClock, type Clock } from "../runtime/clock.js";
import type { Logger } from "../runtime/logger.js";
import type { PlansHere } from "../plan/asked.js";
import type { TaskRegistry } from "../task/registry.js";
import { tokenCheck } from "./auth.js";
import { acceptJsonOnly } from "./body.js";
import { NOT_REACHED, type Entry, type HttpContext, type HttpSettings } from "./context.js";
import { errorHandler } from "./errors.js";
import { malformedHandler } from "./malformed.js";
import type { Metrics } from "./metrics.js";
import { createPaths, knowAllMethods } from "./paths.js";
import { swaggerOptions } from "./openapi.js";
import { parseQuery } from "./query.js";
import { createReplies, type Replies } from "./reply.js";
import { requestIdFrom, requestIdSource } from "./request-id.js";
import { diagnosticsRoute } from "./routes/diagnostics.js";
import { jobRoutes } from "./routes/jobs.js";
import { planRoutes } from "./routes/plans.js";
import { serviceRoutes } from "./routes/service.js";
import { taskRoutes } from "./routes/tasks.js";
import { SHARED_SCHEMAS } from "./schemas.js";
import type { Problem } from "./wire.js";

export type { HttpSettings } from "./context.js";

export interface HttpOptions {
  /** Those of the engine. */
  readonly tasks: TaskRegistry;
  /** Null until it serves. */
  readonly engine: () => Engine | null;
  /** Null until the engine is there. Left out: plans are not served. */
  readonly plans?: () => PlansHere | null;
  readonly settings: HttpSettings;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly clock?: Clock;
  /** Must be header-safe. */
  readonly newRequestId?: () => string;
}

/** Longer than the 60 s after which common proxies drop idle connections, so that they do it first. */
const KEEP_ALIVE_TIMEOUT_MS = 72_000;
/** A body of 16 MB over half a megabit per second; how long an answer takes is not its matter. */
const REQUEST_TIMEOUT_MS = 300_000;
const HEADERS_TIMEOUT_MS = 60_000;
/** Room for a task name or id in which every character is percent-encoded; what is longer names nothing. */
const MAX_PARAM_CHARS = 1_000;
/** A server that restarts is rarely away for less, nor is what this one waits for. */
const RETRY_AFTER_S = 5;

/** Ready to listen. Close it before the engine's ledger; see the file's comment for what that does. */
export function createHttpApp(options: HttpOptions): FastifyInstance {
  const { plans } = options;
  const context: HttpContext = {
    tasks: options.tasks,
    engineIfThere: options.engine,
    get engine() {
      return reached(options.engine());
    },
    plans: plans === undefined ? null : () => reached(plans()),
    settings: options.settings,
    logger: options.logger,
    metrics: options.metrics,
    clock: options.clock ?? systemClock,
    waits: new Set(),
    closing: false,
  };
  const replies = createReplies(context);
  const app = createServer(context, replies, options.newRequestId ?? requestIdSource());
  const enter = createGate(context, replies);

  app.decorateRequest("entry", null);
  app.decorateRequest("requestId", undefined);
  app.decorateRequest("startedMs", 0);
  knowAllMethods(app);
  acceptJsonOnly(app);
  app.setValidatorCompiler(validatorOf);
  // No reply comes this way: their schemas are for the OpenAPI document.
  app.setSerializerCompiler(() => (body) => JSON.stringify(body));
  app.setErrorHandler(errorHandler(replies, context));
  app.addHook("preClose", (done) => {
    context.closing = true;
    for (const waiting of context.waits) waiting.abort();
    done();
  });
  // What the router can't even try, like `OPTIONS *`; unknown paths have a route of their own.
  app.setNotFoundHandler((_, reply) => {
    replies.refuse(reply, { fault: "not_found" });
  });

  const { tasks } = context;
  const { asyncEnabled, authToken } = context.settings;
  const defaultTask =
    context.settings.defaultTask ?? (tasks.names.length === 1 ? (tasks.names[0] ?? null) : null);
  for (const schema of SHARED_SCHEMAS) app.addSchema(schema);
  void app.register(swagger, swaggerOptions(tasks, { defaultTask, withAuth: authToken !== null }));
  void app.register((scope, _, done) => {
    const { only, unknown } = createPaths(scope, context, replies, enter);
    serviceRoutes(scope, context, replies, only);
    diagnosticsRoute(context, replies, only);
    taskRoutes(context, replies, only);
    if (asyncEnabled) jobRoutes(context, replies, only, defaultTask);
    else unknown("/jobs", "job");
    unknown("/jobs/*", "job");
    if (asyncEnabled && context.plans !== null) planRoutes(context, context.plans, replies, only);
    else unknown("/plans", "job");
    unknown("/plans/*", "job");
    unknown("/*", "envelope");
    done();
  });
  return app;
}

/** A header is text in any case: the schemas of headers are for the OpenAPI document. */
const validatorOf: typeof TypeBoxValidatorCompiler = (route) =>
  route.httpPart === "headers" ? () => true : TypeBoxValidatorCompiler(route);

/** @throws JobtableError `not_ready` */
function reached<Part>(part: Part | null): Part {
  if (part === null) throw new JobtableError("not_ready", NOT_REACHED);
  return part;
}

function createServer(
  context: HttpContext,
  replies: Replies,
  newRequestId: () => string,
): FastifyInstance {
  const isAuthorized = tokenCheck(context.settings.authToken);
  const app = fastify({
    logger: false,
    bodyLimit: context.settings.requestSizeLimitBytes,
    exposeHeadRoutes: false,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    return503OnClosing: false,
    // HTTP/1.1 without Host is refused by the gate, with a body; Node's own refusal has none.
    http: { headersTimeout: HEADERS_TIMEOUT_MS, requireHostHeader: false },
    routerOptions: { maxParamLength: MAX_PARAM_CHARS, querystringParser: parseQuery },
    genReqId: (request) => requestIdFrom(request.headers["x-request-id"], newRequestId),
    clientErrorHandler: malformedHandler(newRequestId, context.metrics),
    frameworkErrors: (_error, { headers }, reply) => {
      // Percent-encoding that decodes to nothing, or a parameter beyond any name: no such path.
      const fault = isAuthorized(headers.authorization) ? "not_found" : "unauthorized";
      replies.refuse(reply, { fault });
    },
  });
  // An expectation that nobody can meet may be ignored (RFC 9110, 10.1.1); Node's own 417 has no body.
  app.server.on("checkExpectation", (request, response) => {
    app.server.emit("request", request, response);
  });
  return app;
}

function notReady(detail: string): Problem {
  return { fault: "not_ready", detail, retryAfterS: RETRY_AFTER_S };
}

/** Judges every request before its body is read, and hangs on it what its answer will need. */
function createGate(
  context: HttpContext,
  replies: Replies,
): (entry: Entry) => onRequestHookHandler {
  const { clock, settings } = context;
  const isAuthorized = tokenCheck(settings.authToken);
  const judge = (entry: Entry, { headers, raw }: FastifyRequest): Problem | null => {
    if (headers.host === undefined && raw.httpVersion === "1.1")
      return { fault: "bad_request", detail: "the Host header is missing" };
    if (!entry.isPublic && !isAuthorized(headers.authorization)) return { fault: "unauthorized" };
    if (!entry.isPublic && context.closing) return notReady("the server is going down");
    if (!entry.isEarly && context.engineIfThere() === null) return notReady(NOT_REACHED);
    return null;
  };
  return (entry) => (request, reply, done) => {
    request.entry = entry;
    request.startedMs = clock.monotonicMs();
    const problem = judge(entry, request);
    if (problem === null) done();
    else replies.refuse(reply, problem);
  };
}
