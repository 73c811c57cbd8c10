/**
 * What is given to `PlanRecords`, checked and made storable, so that all ledgers say the same of it.
 * Ids, names and paths must mean later what they mean now: they are kept as they are, or refused. JSON
 * is refused where it is too large, since a part of it is none. Logs are cut, and cleaned like all text.
 *
 * What is refused here was let through by whoever gave it: a bug, told by an `Error`.
 */
import { isUlid } from "../job/id.js";
import {
  cleanText,
  isStorable,
  MAX_PAGE,
  MAX_PATCH_BYTES,
  MAX_PATH_BYTES,
  MAX_PLAN_JSON_CHARS,
  MAX_PLAN_NAME_CHARS,
  MAX_PLAN_STEPS,
  MAX_STEP_JSON_CHARS,
  MAX_STEP_LOG_CHARS,
} from "../job/limits.js";
import type { NewPlanRun, PlanSeen, RunOutcomeRecord, StepRecord } from "./plan-records.js";

export function storablePlan({ planId, name, workspace, file }: PlanSeen): PlanSeen {
  checkId("planId", planId);
  if (name === "" || name.length > MAX_PLAN_NAME_CHARS)
    throw refused("name", `must have 1 to ${String(MAX_PLAN_NAME_CHARS)} characters`);
  checkExact("name", name);
  checkPath("workspace", workspace);
  if (file !== null) checkPath("file", file);
  return { planId, name, workspace, file };
}

export function storableRun({ jobId, planId, phase, definitionJson }: NewPlanRun): NewPlanRun {
  checkId("jobId", jobId);
  return {
    jobId,
    planId,
    phase,
    definitionJson: storableJson("definitionJson", definitionJson, MAX_PLAN_JSON_CHARS),
  };
}

export function storableStep({ jobId, step, recordJson, log }: StepRecord): StepRecord {
  if (!Number.isInteger(step) || step < 0 || step >= MAX_PLAN_STEPS)
    throw refused("step", `must be an integer from 0 to ${String(MAX_PLAN_STEPS - 1)}`);
  const stored = storableJson("recordJson", recordJson, MAX_STEP_JSON_CHARS);
  return { jobId, step, recordJson: stored, log: cleanText(log, MAX_STEP_LOG_CHARS) };
}

/** The patch is a copy: whoever gave it may go on with it. */
export function storableOutcome(outcome: RunOutcomeRecord): RunOutcomeRecord {
  const { jobId, patch } = outcome;
  const outcomeJson = storableJson("outcomeJson", outcome.outcomeJson, MAX_PLAN_JSON_CHARS);
  if (patch === undefined) return { jobId, outcomeJson };
  if (patch.byteLength > MAX_PATCH_BYTES)
    throw refused("patch", `must be of at most ${String(MAX_PATCH_BYTES)} bytes`);
  return { jobId, outcomeJson, patch: new Uint8Array(patch) };
}

/** How many records are answered. */
export function storedLimit(limit: number): number {
  return limit > 0 ? Math.min(Math.floor(limit), MAX_PAGE) : 0;
}

export function unknownPlan(planId: string): Error {
  return refused("planId", `no plan ${planId} is known: use it first`);
}

export function secondRun(jobId: string): Error {
  return refused("jobId", `${jobId} has a run already: give every run a job of its own`);
}

function checkId(what: string, id: string): void {
  if (!isUlid(id)) throw refused(what, "must be a ULID of 26 characters");
}

function checkExact(what: string, text: string): void {
  if (!isStorable(text)) throw refused(what, "must not hold NUL characters or lone surrogates");
}

function checkPath(what: string, path: string): void {
  checkExact(what, path);
  if (path === "" || Buffer.byteLength(path) > MAX_PATH_BYTES)
    throw refused(what, `must be a path of 1 to ${String(MAX_PATH_BYTES)} bytes`);
}

function storableJson(what: string, json: string, maxChars: number): string {
  if (json.length > maxChars)
    throw refused(what, `must have at most ${String(maxChars)} characters`);
  return cleanText(json, maxChars);
}

function refused(what: string, why: string): Error {
  return new Error(`plan records: ${what}: ${why}`);
}
