/**
 * Standard Schema (https://standardschema.dev) in our words. A schema is a user's code: it may
 * answer now or later, and what it throws is a failed check, never a crash.
 */
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";
import { cleanText } from "../job/limits.js";
import { describe } from "./failure.js";

export interface InputIssue {
  /** `img_data`, `words.0.text`; empty: the input itself. */
  readonly path: string;
  readonly message: string;
}

export type SchemaCheck =
  | { readonly kind: "valid"; readonly value: unknown }
  | { readonly kind: "invalid"; readonly empty: boolean; readonly issues: readonly InputIssue[] };

/** Nobody reads more of them, and a list of ten thousand items can have as many. */
const MAX_ISSUES = 20;
const MAX_PATH_CHARS = 200;
const MAX_ISSUE_CHARS = 500;

/**
 * Runs a schema; without one everything is valid. The value of a valid check is what the schema
 * made of it (defaults, transforms). Never throws or rejects.
 */
export function checkSchema(
  schema: StandardSchemaV1 | undefined,
  value: unknown,
): SchemaCheck | Promise<SchemaCheck> {
  if (schema === undefined) return { kind: "valid", value };
  try {
    const result = schema["~standard"].validate(value);
    if (!isThenable(result)) return read(result, value);
    return Promise.resolve(result)
      .then((later) => read(later, value))
      .catch(broken);
  } catch (error) {
    return broken(error);
  }
}

/** JSON Schema (draft 2020-12) of what goes into a schema; `{}` where it can't say (Standard JSON Schema is an addition that not every library has). */
export function inputJsonSchema(schema: StandardSchemaV1 | undefined): Record<string, unknown> {
  const standard: unknown = schema?.["~standard"];
  if (typeof standard !== "object" || standard === null || !("jsonSchema" in standard)) return {};
  const { jsonSchema } = standard;
  if (typeof jsonSchema !== "object" || jsonSchema === null || !("input" in jsonSchema)) return {};
  if (typeof jsonSchema.input !== "function") return {};
  const input = jsonSchema.input as (options: StandardJSONSchemaV1.Options) => unknown;
  // The option is zod's: a part that JSON Schema can't express becomes `{}` instead of an error.
  return (
    tryConvert(() => input({ target: TARGET })) ??
    tryConvert(() => input({ target: TARGET, libraryOptions: { unrepresentable: "any" } })) ??
    {}
  );
}

/** One line of what is wrong: `words.0.text: expected string; ...`. */
export function issuesLine(issues: readonly InputIssue[]): string {
  return issues
    .map(({ path, message }) => (path === "" ? message : `${path}: ${message}`))
    .join("; ");
}

const TARGET = "draft-2020-12";

function tryConvert(convert: () => unknown): Record<string, unknown> | undefined {
  try {
    const made = convert();
    // Through JSON, so that what goes into OpenAPI is plain data, whatever the library hands out.
    const plain: unknown = JSON.parse(JSON.stringify(made));
    return typeof plain === "object" && plain !== null && !Array.isArray(plain)
      ? (plain as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

/** Whether it may have to be waited for; waiting for what turns out to be a value does no harm. */
export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  return typeof (value as { readonly then?: unknown }).then === "function";
}

function broken(error: unknown): SchemaCheck {
  return invalid(false, [{ path: "", message: `the schema itself failed: ${describe(error)}` }]);
}

function invalid(empty: boolean, issues: readonly InputIssue[]): SchemaCheck {
  return { kind: "invalid", empty, issues };
}

function read(result: StandardSchemaV1.Result<unknown>, input: unknown): SchemaCheck {
  // By the specification "a falsy value" means success; libraries give undefined or leave it out.
  if (!result.issues) return { kind: "valid", value: result.value };
  const found = result.issues.map((issue) => ({
    keys: keysOf(issue),
    message: textOf(issue.message),
  }));
  if (found.length === 0) return invalid(false, [{ path: "", message: "invalid" }]);
  const shown = found.slice(0, MAX_ISSUES).map(({ keys, message }) => ({
    path: cleanText(keys.map(String).join("."), MAX_PATH_CHARS),
    message: cleanText(message, MAX_ISSUE_CHARS),
  }));
  const more = found.length - shown.length;
  if (more > 0) shown.push({ path: "", message: `and ${String(more)} more` });
  return invalid(isBlank(input) || found.every(({ keys }) => isBlankAt(input, keys)), shown);
}

/** Libraries in JavaScript may leave it out. */
function textOf(message: unknown): string {
  return typeof message === "string" ? message : "invalid";
}

function keysOf(issue: StandardSchemaV1.Issue): PropertyKey[] {
  return (issue.path ?? []).map((segment) => (typeof segment === "object" ? segment.key : segment));
}

/** Whether an issue is about a top-level input that is missing or empty. */
function isBlankAt(input: unknown, keys: readonly PropertyKey[]): boolean {
  const [key, ...deeper] = keys;
  if (key === undefined) return isBlank(input);
  if (deeper.length > 0 || typeof input !== "object" || input === null) return false;
  const value: unknown = Object.hasOwn(input, key) ? Reflect.get(input, key) : undefined;
  return value === undefined || value === null || value === "";
}

function isBlank(input: unknown): boolean {
  if (input === undefined || input === null || input === "") return true;
  return typeof input === "object" && !Array.isArray(input) && Object.keys(input).length === 0;
}
