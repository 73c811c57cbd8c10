/** The options of a submit, checked: each complaint names the option and what it takes. */
import {
  isStorable,
  MAX_ATTEMPTS,
  MAX_DELAY_MS,
  MAX_IDEMPOTENCY_KEY_CHARS,
  MAX_PRIORITY,
  MAX_TIMEOUT_MS,
} from "../job/limits.js";
import type { InputIssue } from "../task/schema.js";
import type { SubmitRequest } from "./api.js";

/** @param nowMs wall time: what is due later than a year from now is a mistake. */
export function optionIssues(request: SubmitRequest, nowMs: number): readonly InputIssue[] {
  const issues: InputIssue[] = [];
  const check = (path: keyof SubmitRequest, least: number, most: number): void => {
    const value = request[path];
    if (value === undefined) return;
    const isWhole = typeof value === "number" && Number.isInteger(value);
    if (isWhole && value >= least && value <= most) return;
    issues.push({ path, message: `must be an integer from ${String(least)} to ${String(most)}` });
  };
  check("priority", -MAX_PRIORITY, MAX_PRIORITY);
  check("maxAttempts", 1, MAX_ATTEMPTS);
  check("delayMs", 0, MAX_DELAY_MS);
  check("runAtMs", 0, nowMs + MAX_DELAY_MS);
  check("timeoutMs", 1, MAX_TIMEOUT_MS);
  const { delayMs, runAtMs, idempotencyKey } = request;
  if (delayMs !== undefined && runAtMs !== undefined)
    issues.push({ path: "runAtMs", message: "can't be given together with a delay" });
  const fault = idempotencyKey === undefined ? null : keyFault(idempotencyKey);
  if (fault !== null) issues.push({ path: "idempotencyKey", message: fault });
  return issues;
}

/** What is wrong with an idempotency key, or null. Two keys that a ledger could take for one are not let in. */
export function keyFault(key: unknown): string | null {
  const isBounded =
    typeof key === "string" && key.length >= 1 && key.length <= MAX_IDEMPOTENCY_KEY_CHARS;
  if (!isBounded) return `must be text of 1 to ${String(MAX_IDEMPOTENCY_KEY_CHARS)} characters`;
  return isStorable(key) ? null : "must not hold NUL characters or lone surrogates";
}
