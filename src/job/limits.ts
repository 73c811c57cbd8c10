/** Bounds on what one job may carry. Every text that reaches a ledger is held to one of these. */

/** Error messages are for people; a stack or a dumped response beyond this helps nobody. */
export const MAX_ERROR_CHARS = 2_000;
/** Of an attempt that was not the last: with ten of them a job's record stays small. */
export const MAX_ATTEMPT_ERROR_CHARS = 1_000;
export const MAX_ATTEMPT_ERRORS = 10;
/** Long enough for a UUID with a prefix or a W3C trace parent, short enough to index and log. */
export const MAX_REQUEST_ID_CHARS = 200;
/** As much as the payment services that made such keys a custom allow; short enough to index. */
export const MAX_IDEMPOTENCY_KEY_CHARS = 255;
/** Of a payload: twice the hexadecimal digits of SHA-512. */
export const MAX_FINGERPRINT_CHARS = 256;
export const MAX_TASK_NAME_CHARS = 100;
/** What `ctx.progress` may carry as JSON: it is written while the job runs. */
export const MAX_PROGRESS_BYTES = 4_096;
/** A result is kept in one row and answered in one reply; larger outputs belong into a file or object store. */
export const MAX_RESULT_BYTES = 64 * 1024 * 1024;
/** Attempts beyond this are a loop, not a retry. */
export const MAX_ATTEMPTS = 100;
/** Either way from 0: more levels than anyone tells apart. */
export const MAX_PRIORITY = 1_000;
/** A year, in ms: what is due later belongs into a calendar. */
export const MAX_DELAY_MS = 365 * 86_400_000;
/** Thirty days, in ms: a run may take days while it beats. */
export const MAX_TIMEOUT_MS = 30 * 86_400_000;
/** Jobs on one page of a list. */
export const MAX_PAGE = 1_000;
/** As that of a task. */
export const MAX_PLAN_NAME_CHARS = 100;
/** As UTF-8. Name and path stand in one entry of an index, which in PostgreSQL takes 2,704 bytes. */
export const MAX_PATH_BYTES = 2_000;
/** Of one phase: more is a program, which belongs into a file of its own. */
export const MAX_PLAN_STEPS = 200;
/** Of a plan's definition and of a run's outcome as JSON: a file of a megabyte, whatever it escapes. */
export const MAX_PLAN_JSON_CHARS = 8 * 1024 * 1024;
/** Of a step's record as JSON: all of a run's are answered together. */
export const MAX_STEP_JSON_CHARS = 1_048_576;
/** What a step of a plan wrote, as far as it is kept. */
export const MAX_STEP_LOG_CHARS = 1_048_576;
/** A patch is kept in one row; a plan that changes more than this makes what belongs into a file store. */
export const MAX_PATCH_BYTES = 64 * 1024 * 1024;

/** Letters, digits, `_`, `-` and `.`; it stands in URLs, metrics and file names. */
export const TASK_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/;

/**
 * Makes any text storable by every ledger alike: lone surrogates and NUL characters become U+FFFD
 * (PostgreSQL refuses both in text), and what is longer than `maxChars` (>= 1) UTF-16 units is cut
 * between characters and says so.
 */
export function cleanText(text: string, maxChars: number): string {
  const bounded = text.length > maxChars ? `${cut(text, maxChars - 1)}…` : text;
  return isStorable(bounded) ? bounded : bounded.toWellFormed().replaceAll("\0", "\uFFFD");
}

/** Whether every ledger keeps the text exactly as it is. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes("\0");
}

/** The first `length` units, one less where that would tear a surrogate pair apart. */
function cut(text: string, length: number): string {
  const tears = (text.codePointAt(length - 1) ?? 0) > 0xffff;
  return text.slice(0, tears ? length - 1 : length);
}
