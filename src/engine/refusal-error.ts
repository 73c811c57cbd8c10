/** What the engine refused, as the error that the library rejects with. */
import { JobtableError } from "../job/errors.js";
import { formatJobId } from "../job/id.js";
import type { SubmitRefusal } from "./api.js";

export function refusalError(refusal: SubmitRefusal): JobtableError {
  switch (refusal.kind) {
    case "unknown_task":
      return new JobtableError(
        "unknown_task",
        `unknown task ${JSON.stringify(refusal.task)}; known: ${refusal.known.join(", ")}`,
      );
    case "invalid": {
      const issues = refusal.issues.map(({ path, message }) =>
        path === "" ? message : `${path}: ${message}`,
      );
      return invalidInput(issues.join("; "));
    }
    case "full":
      return new JobtableError(
        "queue_full",
        `queue full (max ${String(refusal.limit)}); try again in ${String(refusal.retryAfterS)} s`,
      );
    case "not_ready":
      return new JobtableError("not_ready", `not ready: ${refusal.reason}`);
    case "key_conflict":
      return new JobtableError(
        "key_conflict",
        `idempotency key ${JSON.stringify(refusal.key)} belongs to ${formatJobId(refusal.jobId)}, of another task or input`,
      );
    default:
      return refusal satisfies never;
  }
}

/** @param what the option or path, and what is wrong with it. */
export function invalidInput(what: string): JobtableError {
  return new JobtableError("invalid_input", `invalid input: ${what}`);
}
