/**
 * The two spellings of a job's id: the ULID that is the table's key, and `job_` + ULID, which is what
 * people and clients see. Both are accepted; exactly one text names a job in each spelling, so that
 * ids can be compared as they are (Crockford's aliases and small letters are refused).
 */

const PREFIX = "job_";

/** 26 characters of Crockford's base 32, of which the first holds three bits (https://github.com/ulid/spec). */
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

/** @param jobId the 26-character ULID. */
export function formatJobId(jobId: string): string {
  return PREFIX + jobId;
}

/** @returns the 26-character ULID, or null for text that can't be a job's id. */
export function parseJobId(text: string): string | null {
  const ulid = text.startsWith(PREFIX) ? text.slice(PREFIX.length) : text;
  return ULID.test(ulid) ? ulid : null;
}
