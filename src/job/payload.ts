/**
 * What a job carries to its runner. `schema_version` is the version of the task's input, as the task
 * said it when the job was submitted. The text is recorded exactly as `encodePayload` made it; an
 * input of an older version is brought up where the task runs (task/upgrade.ts), a newer one refused.
 *
 * A phase of a plan has a payload of its own shape, which names no task: it is read as the payload of
 * `plan:execute` or `plan:apply`, whose input says which plan. No user's task can have such a name.
 */
import { isUlid } from "./id.js";
import type { Phase } from "./job.js";

/** Of an input that someone recorded who does not know the task: it is taken for the present version. */
export const UNSTATED_VERSION = 0;
/** The version of a task that names none. */
export const FIRST_VERSION = 1;
/** More often than anyone changes what a task takes. */
export const MAX_VERSION = 1_000;

/** The tasks that run a plan's phases. */
export const PLAN_TASKS = {
  execute: "plan:execute",
  apply: "plan:apply",
} as const satisfies Record<Phase, string>;
/** Of the payload of a plan's phase. */
export const PLAN_VERSION = 1;

/** What `decodePayload` makes of the payload of a plan's phase. */
export interface PlanInput {
  /** 26-character ULID. */
  readonly planId: string;
  readonly phase: Phase;
}

export interface Payload {
  readonly task: string;
  /** Of the input; from 1, or `UNSTATED_VERSION`. */
  readonly version: number;
  readonly input: unknown;
}

export type DecodedPayload =
  | { readonly kind: "payload"; readonly payload: Payload }
  | { readonly kind: "unreadable"; readonly errorMessage: string };

/** @param inputJson the input as JSON text; it is embedded, not parsed again. */
export function encodePayload(task: string, inputJson: string, version = FIRST_VERSION): string {
  return `{"schema_version":${String(version)},"task":${JSON.stringify(task)},"input":${inputJson}}`;
}

/** @param planId the 26-character ULID. @param extra what runs of the phase need to know besides; must be JSON. */
export function encodePlanPayload(planId: string, phase: Phase, extra: object = {}): string {
  const payload = { schema_version: PLAN_VERSION, plan_id: planId, phase, extra };
  return JSON.stringify(payload);
}

export function decodePayload(payloadJson: string): DecodedPayload {
  let parsed: unknown;
  try {
    parsed = JSON.parse(payloadJson);
  } catch {
    return unreadable("it is not JSON");
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
    return unreadable("it is not an object");
  const payload = parsed as Record<string, unknown>;
  const version = payload["schema_version"];
  if (typeof version !== "number" || !Number.isInteger(version) || version < UNSTATED_VERSION)
    return unreadable("schema_version is not a whole number from 0");
  const task = payload["task"];
  if (task === undefined && "plan_id" in payload)
    return decodePlan(version, payload["plan_id"], payload["phase"]);
  if (typeof task !== "string") return unreadable("task is not a string");
  return { kind: "payload", payload: { task, version, input: payload["input"] } };
}

function decodePlan(version: number, planId: unknown, phase: unknown): DecodedPayload {
  if (version > PLAN_VERSION)
    return unreadable(
      `the plan's version ${String(version)} is newer than this worker's (${String(PLAN_VERSION)}): upgrade the worker`,
    );
  if (typeof planId !== "string" || !isUlid(planId)) return unreadable("plan_id is not a ULID");
  if (phase !== "execute" && phase !== "apply")
    return unreadable("phase is neither execute nor apply");
  const input: PlanInput = { planId, phase };
  return { kind: "payload", payload: { task: PLAN_TASKS[phase], version, input } };
}

function unreadable(why: string): DecodedPayload {
  return { kind: "unreadable", errorMessage: `UnreadablePayload: ${why}` };
}
