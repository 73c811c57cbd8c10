/**
 * What went wrong with the attempts of a job that were queued again, as its row holds it: a JSON array
 * of objects, the oldest first, null until the first. The statements that queue a job again append to
 * it; here it is read.
 */
import { LedgerError } from "../../job/errors.js";
import { NO_ATTEMPT_ERRORS, type AttemptError } from "../../job/job.js";

/** @throws LedgerError `ledger_unreadable` when the text is anything else. */
export function toAttemptErrors(json: string | null): readonly AttemptError[] {
  if (json === null) return NO_ATTEMPT_ERRORS;
  try {
    const list: unknown = JSON.parse(json);
    if (Array.isArray(list)) return list.map(toAttemptError);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw unreadable(json);
}

function toAttemptError(entry: unknown): AttemptError {
  const { attempt, worker_id, at_ms, error_message } = Object(entry) as Record<string, unknown>;
  if (
    typeof attempt !== "number" ||
    typeof worker_id !== "string" ||
    typeof at_ms !== "number" ||
    typeof error_message !== "string"
  )
    throw unreadable(JSON.stringify(entry));
  return { attempt, workerId: worker_id, atMs: at_ms, errorMessage: error_message };
}

function unreadable(text: string): LedgerError {
  return new LedgerError(
    "ledger_unreadable",
    `the ledger has ${text} where an attempt's error belongs: something else has written to it`,
  );
}
