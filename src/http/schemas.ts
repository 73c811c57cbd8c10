/**
 * The shapes of the wire, once: what requests are checked against, and what the OpenAPI document
 * says. Bodies that carry a task's input are checked by the task's own schema in the engine.
 */
import Type, { type Static, type TSchema } from "typebox";
import {
  MAX_ATTEMPTS,
  MAX_DELAY_MS,
  MAX_IDEMPOTENCY_KEY_CHARS,
  MAX_PRIORITY,
  MAX_REQUEST_ID_CHARS,
  MAX_TIMEOUT_MS,
} from "../job/limits.js";
import { ALL_STATUSES } from "../job/state.js";
import { Diagnostics } from "./diagnostics-schema.js";
import { PLAN_SCHEMAS } from "./plan-schemas.js";
import { ALL_STATES } from "./wire.js";

export const DEFAULT_LIST_LIMIT = 50;
export const MAX_LIST_LIMIT = 200;
export const DEFAULT_WAIT_MS = 30_000;
export const MAX_WAIT_MS = 300_000;

const words = (values: readonly string[]): TSchema => Type.Unsafe({ type: "string", enum: values });
const ref = (name: string): TSchema => Type.Ref(`${name}#`);
const time = Type.String({ format: "date-time" });
const requestId = Type.String({
  maxLength: MAX_REQUEST_ID_CHARS,
  description: "The caller's own id of the request; echoed with the result",
});

/** Its length, too, is checked apart. */
const idempotencyKey = Type.String({
  minLength: 1,
  maxLength: MAX_IDEMPOTENCY_KEY_CHARS,
  description: "A request that is sent again with its key is answered with the job that it made",
});

/** The same as a header, which the bare form of a body needs. */
export const SubmitHeaders = Type.Object({
  "idempotency-key": Type.Optional(
    Type.String({
      description: "As idempotency_key of the body; a quoted string counts without its quotes",
    }),
  ),
});

/** What a retry may carry; the header alone, since it needs no body. */
export const RetryHeaders = Type.Object({
  "idempotency-key": Type.Optional(
    Type.String({
      description:
        "A retry that is sent again with its key is answered with the job that it made; a quoted string counts without its quotes",
    }),
  ),
});

/** `POST /jobs` with a string `task`. */
export const JobRequest = Type.Object(
  {
    task: Type.String({ description: "The task to run" }),
    input: Type.Optional(Type.Unknown({ description: "The task's input; default {}" })),
    // Its length is checked apart, in UTF-16 units as the ledger counts, for every kind of body.
    req_id: Type.Optional(requestId),
    priority: Type.Optional(
      Type.Integer({
        minimum: -MAX_PRIORITY,
        maximum: MAX_PRIORITY,
        default: 0,
        description: "Larger is sooner",
      }),
    ),
    delay_ms: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_DELAY_MS,
        description: "Not to start before this has passed",
      }),
    ),
    // What it says is checked apart, for a complaint that helps.
    run_at: Type.Optional(
      Type.Unsafe<string>({
        type: "string",
        format: "date-time",
        description:
          "Not to start before this time (RFC 3339 with a zone), at most a year from now; not together with delay_ms",
      }),
    ),
    max_attempts: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_ATTEMPTS,
        description: "How often it may be tried in all; default: the task's own",
      }),
    ),
    timeout_ms: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_TIMEOUT_MS,
        description: "Limit of one run; default: the task's own",
      }),
    ),
    idempotency_key: Type.Optional(idempotencyKey),
  },
  { additionalProperties: false, $id: "JobRequest" },
);
export type JobRequest = Static<typeof JobRequest>;

export const ListQuery = Type.Object(
  {
    state: Type.Optional(
      Type.String({ description: `Comma-separated, of: ${ALL_STATES.join(", ")}` }),
    ),
    task: Type.Optional(Type.String()),
    plan: Type.Optional(Type.String({ description: "plan_ + ULID, or the ULID alone" })),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: MAX_LIST_LIMIT, default: DEFAULT_LIST_LIMIT }),
    ),
    cursor: Type.Optional(Type.String({ description: "next_cursor of the page before" })),
  },
  { additionalProperties: false },
);
export type ListQuery = Static<typeof ListQuery>;

/** Lenient on purpose: whatever is no positive number stands for the default. */
export const WaitQuery = Type.Object({
  timeout: Type.Optional(
    Type.Unsafe<unknown>({
      description: `Milliseconds; default ${String(DEFAULT_WAIT_MS)}, at most ${String(MAX_WAIT_MS)}`,
    }),
  ),
});

export type WaitQuery = Static<typeof WaitQuery>;

export const JobParams = Type.Object({
  id: Type.String({ description: "job_ + ULID, or the ULID alone" }),
});
export type JobParams = Static<typeof JobParams>;
export const TaskParams = Type.Object({ task: Type.String() });
export type TaskParams = Static<typeof TaskParams>;

const Issues = Type.Array(Type.Object({ path: Type.String(), message: Type.String() }));
const errorParts = {
  detail: Type.Optional(Type.String()),
  issues: Type.Optional(Issues),
  known: Type.Optional(Type.Array(Type.String())),
};

/** Everything that stands under `components.schemas` by its `$id`, tasks' inputs apart. */
export const SHARED_SCHEMAS = [
  JobRequest,
  Type.Object(
    {
      job_id: Type.String({ pattern: "^job_[0-9A-HJKMNP-TV-Z]{26}$" }),
      state: words(ALL_STATES),
      elapsed_ms: Type.Integer({
        minimum: 0,
        description: "From submission to now, or to its end",
      }),
      status: words(ALL_STATUSES),
      task: Type.String(),
      attempt: Type.Integer({ minimum: 0 }),
      max_attempts: Type.Integer({ minimum: 1 }),
      priority: Type.Integer(),
      created_at: time,
      started_at: Type.Optional(time),
      finished_at: Type.Optional(time),
      worker_id: Type.Optional(Type.String({ description: "Who runs it, or ran it last" })),
      last_heartbeat: Type.Optional(time),
      plan_id: Type.Optional(Type.String()),
      phase: Type.Optional(words(["execute", "apply"])),
      req_id: Type.Optional(Type.String()),
      idempotency_key: Type.Optional(Type.String()),
      cancel_requested: Type.Optional(Type.Boolean()),
      error: Type.Optional(Type.String({ description: "How it failed" })),
      reason: Type.Optional(Type.String({ description: "How its last attempt failed" })),
      attempt_errors: Type.Optional(
        Type.Array(
          Type.Object({
            attempt: Type.Integer({ minimum: 1 }),
            worker_id: Type.String(),
            at: time,
            error: Type.String(),
          }),
          { description: "How earlier attempts failed: oldest first, the newest 10" },
        ),
      ),
      progress: Type.Optional(Type.Unknown({ description: "What its task reported last" })),
    },
    { $id: "Job" },
  ),
  Type.Object(
    {
      job_id: Type.String(),
      state: Type.Unsafe({
        type: "string",
        enum: ALL_STATES,
        description: "pending; of a repeated request its job's present state",
      }),
      poll_url: Type.String(),
      result_url: Type.String(),
    },
    { $id: "Accepted" },
  ),
  Type.Object(
    { job_id: Type.String(), state: words(["cancelled", "running"]) },
    { $id: "Cancelled" },
  ),
  Type.Object(
    { jobs: Type.Array(ref("Job")), next_cursor: Type.Optional(Type.String()) },
    { $id: "JobList" },
  ),
  Type.Object(
    {
      req_id: Type.Union([Type.String(), Type.Null()], {
        description: "Null for a job that was not submitted over HTTP and has no id",
      }),
      code: Type.Literal(0),
      msg: Type.Literal("success"),
      data: Type.Unknown({ description: "What the task returned" }),
    },
    { $id: "Success" },
  ),
  Type.Object(
    {
      req_id: Type.String(),
      code: Type.Integer(),
      msg: Type.String(),
      data: Type.Null(),
      ...errorParts,
    },
    { $id: "EnvelopeError" },
  ),
  Type.Object(
    {
      error: Type.String(),
      code: Type.Optional(Type.Integer()),
      reason: Type.Optional(Type.String()),
      job_id: Type.Optional(Type.String({ description: "The job that holds the plan" })),
      req_id: Type.Optional(Type.String()),
      ...errorParts,
    },
    { $id: "JobError" },
  ),
  Diagnostics,
  ...PLAN_SCHEMAS,
  Type.Object({ status: Type.Literal("ok") }, { $id: "Alive" }),
  Type.Object(
    { status: words(["ready", "not ready"]), reason: Type.Optional(Type.String()) },
    { $id: "Readiness" },
  ),
] as const;

export type ReplySchemas = Record<number, TSchema>;

/** @param name of one of the shared schemas. */
export function reply(name: string, description: string, headers: readonly string[] = []): TSchema {
  return Type.Unsafe({
    ...ref(name),
    description,
    ...(headers.length > 0
      ? { headers: Object.fromEntries(headers.map((header) => [header, { type: "string" }])) }
      : {}),
  });
}

const ERROR_WORDS: Readonly<Record<number, readonly [string, ...string[]]>> = {
  400: ["Not JSON, or a required input is missing or empty"],
  401: ["No token, or not the right one", "WWW-Authenticate"],
  404: ["Not found"],
  405: ["Method not allowed", "Allow"],
  409: ["In conflict with the job's state"],
  413: ["The body is too large"],
  415: ["The body is not application/json"],
  422: ["Invalid input (detail lists path and reason), or a key of another request"],
  429: ["Too many requests", "Retry-After"],
  500: ["Failed"],
  503: ["Not ready", "Retry-After"],
  504: ["Its time limit passed"],
};

/** The error replies of one call, all in one shape; those that every call can give are added. */
export function errors(name: "JobError" | "EnvelopeError", ...statuses: number[]): ReplySchemas {
  return Object.fromEntries(
    [...statuses, 401, 405, 500, 503].map((status) => {
      const [description, ...headers] = ERROR_WORDS[status] ?? ["Error"];
      return [status, reply(name, description, headers)];
    }),
  );
}
