/**
 * The two spellings of an id: the ULID that is the table's key, and `job_` (for plans `plan_`) + ULID,
 * which is what people and clients see. Both are accepted; exactly one text names a job in each
 * spelling, so that ids can be compared as they are (Crockford's aliases and small letters are refused).
 */

const JOB = "job_";
const PLAN = "plan_";

/** 26 characters of Crockford's base 32, of which the first holds three bits (https://github.com/ulid/spec). */
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

export function isUlid(text: string): boolean {
  return ULID.test(text);
}

/** @param jobId the 26-character ULID. */
export function formatJobId(jobId: string): string {
  return JOB + jobId;
}

/** @returns the 26-character ULID, or null for text that can't be a job's id. */
export function parseJobId(text: string): string | null {
  return parseId(JOB, text);
}

/** @param planId the 26-character ULID. */
export function formatPlanId(planId: string): string {
  return PLAN + planId;
}

/** @returns the 26-character ULID, or null for text that can't be a plan's id. */
export function parsePlanId(text: string): string | null {
  return parseId(PLAN, text);
}

function parseId(prefix: string, text: string): string | null {
  const ulid = text.startsWith(prefix) ? text.slice(prefix.length) : text;
  return isUlid(ulid) ? ulid : null;
}
