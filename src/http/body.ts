/**
 * Reads request bodies. Accepts UTF-8 JSON, refuses what would not survive the way through the
 * ledger to a task unchanged: prototype keys, numbers beyond double precision's range, and nesting
 * that later stages could only meet with a stack overflow.
 */
import { isAscii, isUtf8 } from "node:buffer";
import type { FastifyInstance } from "fastify";
import { MAX_REQUEST_ID_CHARS } from "../job/limits.js";
import type { Problem } from "./wire.js";

/** Deeper than any document made by hand or by a program for another; far from any stack's end. */
export const MAX_JSON_DEPTH = 200;

const JSON_MEDIA_TYPE = /^application\/(?:[\w!#$&^.+-]+\+)?json\s*(?:;|$)/i;

/** A refusal on its way through Fastify to the error handler. */
export class RefusedRequest extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail ?? problem.fault);
    this.name = "RefusedRequest";
  }
}

/** Replaces Fastify's parsers; what is not JSON meets 415. The size limit is Fastify's `bodyLimit`. */
export function acceptJsonOnly(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>(
    JSON_MEDIA_TYPE,
    { parseAs: "buffer" },
    (request, bytes, done) => {
      const parsed = parseBody(bytes, request.headers["content-encoding"]);
      if (parsed.kind === "json") done(null, parsed.value);
      else done(new RefusedRequest(parsed.problem));
    },
  );
}

export type ParsedBody =
  | { readonly kind: "json"; readonly value: unknown }
  | { readonly kind: "refused"; readonly problem: Problem };

const badJson = (detail: string): { kind: "refused"; problem: Problem } => ({
  kind: "refused",
  problem: { fault: "bad_json", detail },
});

const NO_BODY = "the body is empty: send a JSON object";

export function parseBody(bytes: Buffer, encoding: string | undefined): ParsedBody {
  if (encoding !== undefined && encoding !== "identity")
    return {
      kind: "refused",
      problem: {
        fault: "media_type",
        detail: `content-encoding ${encoding} is not supported: send the body as it is`,
      },
    };
  // As if there were none: not every call needs one.
  if (bytes.length === 0) return { kind: "json", value: undefined };
  // Most bodies are ASCII, the largest (base64) always: those need no decoding.
  const ascii = isAscii(bytes);
  if (!ascii && !isUtf8(bytes)) return badJson("the body is not valid UTF-8");
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString(ascii ? "latin1" : "utf8"));
  } catch (error) {
    return badJson(error instanceof Error ? error.message : "the body is not JSON");
  }
  const fault = unsafePart(value, 0);
  return fault === null ? { kind: "json", value } : badJson(fault);
}

/** What in a parsed body can't be taken, or null. Every request's body comes through here. */
function unsafePart(value: unknown, depth: number): string | null {
  if (typeof value === "number")
    return Number.isFinite(value) ? null : "a number is too large for a double";
  if (typeof value !== "object" || value === null) return null;
  if (depth >= MAX_JSON_DEPTH)
    return `arrays and objects are nested deeper than ${String(MAX_JSON_DEPTH)} levels`;
  if (Array.isArray(value)) {
    for (const item of value) {
      const fault = unsafePart(item, depth + 1);
      if (fault !== null) return fault;
    }
    return null;
  }
  const fields = value as JsonObject;
  // Half the time of Object.entries; JSON.parse makes no inherited keys.
  for (const key in fields) {
    if (key === "__proto__") return 'the key "__proto__" is not allowed';
    const item = fields[key];
    if (typeof item === "string") continue;
    const fault = unsafePart(item, depth + 1);
    if (fault !== null) return fault;
    if (key === "constructor" && isObject(item) && Object.hasOwn(item, "prototype"))
      return 'the key "constructor.prototype" is not allowed';
  }
  return null;
}

export type JsonObject = Record<string, unknown>;

export type ReadBody =
  | {
      readonly kind: "object";
      /** The whole body, `req_id` included. */
      readonly body: JsonObject;
      /** The body's `req_id`, where it has one. */
      readonly requestId: string | undefined;
    }
  | { readonly kind: "refused"; readonly problem: Problem };

/** What a request that starts work must bring: an object, whose `req_id`, if any, is a bounded string. */
export function readObject(body: unknown): ReadBody {
  if (body === undefined) return badJson(NO_BODY);
  if (!isObject(body)) {
    const found = body === null ? "null" : Array.isArray(body) ? "an array" : `a ${typeof body}`;
    const detail = `the body must be a JSON object, not ${found}`;
    return { kind: "refused", problem: { fault: "invalid_input", detail } };
  }
  const requestId = body["req_id"];
  if (requestId === undefined) return { kind: "object", body, requestId };
  if (typeof requestId === "string" && requestId.length <= MAX_REQUEST_ID_CHARS)
    return { kind: "object", body, requestId };
  const message = `must be a string of at most ${String(MAX_REQUEST_ID_CHARS)} characters`;
  return {
    kind: "refused",
    problem: {
      fault: "invalid_input",
      detail: `req_id: ${message}`,
      issues: [{ path: "req_id", message }],
    },
  };
}

/** A body as a task's bare input. */
export function withoutRequestId(body: JsonObject): JsonObject {
  if (!Object.hasOwn(body, "req_id")) return body;
  const input = { ...body };
  delete input["req_id"];
  return input;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
