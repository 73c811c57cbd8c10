/**
 * Whether a value has the shape of a plan, in words for people. The schema says what is expected;
 * JSON Schema's own complaints about unions and closed objects name everything but the slip.
 */
import Type, { type Static, type TArray, type TObject, type TRecord, type TSchema } from "typebox";
import { Check } from "typebox/value";
import { nearest } from "../../job/nearest.js";
import { RESERVED_VARIABLES } from "../definition.js";
import type { Findings, PlanPath } from "./findings.js";
import { CommandStepSchema, TaskStepSchema } from "./schema.js";

const MAX_SHOWN_CHARS = 40;
const KINDS = ["run", "task"] as const;

/** Adds what is wrong to `findings`. */
export function fits<Schema extends TSchema>(
  schema: Schema,
  value: unknown,
  path: PlanPath,
  findings: Findings,
): value is Static<Schema> {
  const before = findings.count;
  checkShape(schema, value, path, findings);
  return findings.count === before;
}

export function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function checkShape(schema: TSchema, value: unknown, path: PlanPath, findings: Findings): void {
  if ("$ref" in schema) checkStep(value, path, findings);
  else if (Type.IsObject(schema)) checkObject(schema, value, path, findings);
  else if (Type.IsRecord(schema)) checkVariables(schema, value, path, findings);
  else if (Type.IsArray(schema)) checkList(schema, value, path, findings);
  else if (!Check(schema, value)) findings.add(path, mismatch(schema, value));
}

/** One that is of both kinds or of none is told as that, not by the keys that a kind lacks. */
function checkStep(value: unknown, path: PlanPath, findings: Findings): void {
  if (!isMap(value)) {
    findings.add(path, `expected a step, which has run or task, got ${shown(value)}`);
    return;
  }
  const [kind, other] = KINDS.filter((key) => Object.hasOwn(value, key));
  if (kind !== undefined && other === undefined) {
    checkObject(kind === "run" ? CommandStepSchema : TaskStepSchema, value, path, findings);
  } else if (other !== undefined) {
    findings.add([...path, other], "a step has run or task, not both: make it two", "key");
  } else {
    const slip = Object.keys(value).find((key) => nearest(key, KINDS) !== undefined);
    if (slip === undefined)
      findings.add(path, "a step needs run (a command) or task (the name of a task)");
    else findings.add([...path, slip], unknownKey(slip, KINDS), "key");
  }
}

function checkObject(schema: TObject, value: unknown, path: PlanPath, findings: Findings): void {
  if (!isMap(value)) {
    findings.add(path, mismatch(schema, value));
    return;
  }
  const known = Object.keys(schema.properties);
  for (const [key, child] of Object.entries(value)) {
    const property = known.includes(key) ? schema.properties[key] : undefined;
    if (property !== undefined) checkShape(property, child, [...path, key], findings);
    else findings.add([...path, key], unknownKey(key, known), "key");
  }
  for (const key of schema.required)
    if (!Object.hasOwn(value, key))
      findings.add(path, `${key} is missing: ${expectation(schema.properties[key] ?? {})}`);
}

function checkVariables(schema: TRecord, value: unknown, path: PlanPath, findings: Findings): void {
  const [name = "", variable = {}] = Object.entries(schema.patternProperties)[0] ?? [];
  if (!isMap(value) || Object.keys(value).length > Number(keyword(schema, "maxProperties"))) {
    findings.add(path, mismatch(schema, value));
    return;
  }
  for (const [key, child] of Object.entries(value)) {
    if (new RegExp(name).test(key)) checkShape(variable, child, [...path, key], findings);
    else findings.add([...path, key], variableProblem(key), "key");
  }
}

function variableProblem(key: string): string {
  const prefix = RESERVED_VARIABLES.find((reserved) => key.startsWith(reserved));
  return prefix === undefined
    ? `${quoted(key)} can't name a variable: expected letters, digits and _, no digit first`
    : `${quoted(key)} can't be set: variables that begin with ${prefix} are reserved`;
}

function checkList(schema: TArray, value: unknown, path: PlanPath, findings: Findings): void {
  if (!Array.isArray(value) || !Check({ ...schema, items: {} }, value)) {
    findings.add(path, mismatch(schema, value));
    return;
  }
  for (const [index, item] of value.entries())
    checkShape(schema.items, item, [...path, index], findings);
}

function unknownKey(key: string, known: readonly string[]): string {
  const meant = nearest(key, known);
  const told = known.filter((name) => !name.startsWith("$")).join(", ");
  const hint = meant === undefined ? `known: ${told}` : `did you mean ${meant}?`;
  return `unknown key ${quoted(key)}; ${hint}`;
}

function mismatch(schema: TSchema, value: unknown): string {
  const unquoted = typeof value === "number" || typeof value === "boolean";
  const advice = unquoted && Check(schema, String(value)) ? "; quote it to make it text" : "";
  return `${expectation(schema)}, got ${shown(value)}${advice}`;
}

function expectation(schema: TSchema): string {
  const message = keyword(schema, "errorMessage");
  return typeof message === "string" ? message : "expected something else";
}

function keyword(schema: TSchema, name: string): unknown {
  return (schema as Readonly<Record<string, unknown>>)[name];
}

function shown(value: unknown): string {
  if (value === null || value === undefined) return "nothing";
  if (value === "") return "an empty text";
  if (typeof value === "string") return quoted(value);
  if (typeof value === "number") return `the number ${value}`;
  if (typeof value === "boolean") return String(value);
  return Array.isArray(value) ? `a list of ${value.length}` : "a map";
}

function quoted(text: string): string {
  return JSON.stringify(
    text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS - 1)}…` : text,
  );
}
