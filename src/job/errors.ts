/**
 * Every error that a caller can meet, in one registry: its code, the sentence a client may read,
 * whether trying again can help, and the HTTP status it becomes. docs/errors.md lists the same and
 * a test compares them. Errors that are not in here are bugs, and never echo their message to
 * clients.
 */

export const ERRORS = {
  ledger_unavailable: { message: "the ledger can't be reached", retryable: true, http: 503 },
  ledger_refused: { message: "the ledger refuses access", retryable: false, http: 503 },
  ledger_missing: { message: "there is no ledger yet", retryable: false, http: 503 },
  ledger_full: { message: "the ledger's disk is full", retryable: true, http: 503 },
  ledger_closed: { message: "the ledger is closed", retryable: false, http: 503 },
  ledger_unreadable: { message: "the ledger can't be read as one", retryable: false, http: 503 },
  ledger_older: {
    message: "the ledger was written by an older version",
    retryable: false,
    http: 503,
  },
  ledger_newer: {
    message: "the ledger was written by a newer version",
    retryable: false,
    http: 503,
  },
  queue_full: { message: "too many requests", retryable: true, http: 429 },
  not_ready: { message: "service not ready", retryable: true, http: 503 },
  invalid_input: { message: "invalid input", retryable: false, http: 422 },
  key_conflict: { message: "idempotency key conflict", retryable: false, http: 422 },
  unknown_task: { message: "not found", retryable: false, http: 404 },
  invalid_config: { message: "invalid configuration", retryable: false, http: 500 },
  invalid_task: { message: "invalid task", retryable: false, http: 500 },
  invalid_plan: { message: "invalid plan", retryable: false, http: 422 },
  unknown_plan: { message: "not found", retryable: false, http: 404 },
  nothing_to_apply: { message: "nothing to apply", retryable: false, http: 409 },
  invalid_workspace: { message: "invalid workspace", retryable: false, http: 422 },
  sandbox_failed: { message: "the sandbox failed", retryable: true, http: 500 },
  outcome_refused: { message: "the plan's changes can't be kept", retryable: false, http: 422 },
  apply_failed: { message: "the patch was not applied", retryable: true, http: 500 },
  git_failed: { message: "git failed", retryable: true, http: 500 },
} as const satisfies Record<string, { message: string; retryable: boolean; http: number }>;

export type ErrorCode = keyof typeof ERRORS;

export class JobtableError extends Error {
  readonly code: ErrorCode;
  /** @param detail what exactly, where, and what to do: one line, for the log and the command line. */
  constructor(code: ErrorCode, detail: string, options?: ErrorOptions) {
    super(detail, options);
    this.name = "JobtableError";
    this.code = code;
  }
}

/** What a ledger's verbs reject with: a `JobtableError` whose code starts with `ledger_`. */
export class LedgerError extends JobtableError {
  constructor(
    code: Extract<ErrorCode, `ledger_${string}`>,
    detail: string,
    options?: ErrorOptions,
  ) {
    super(code, detail, options);
    this.name = "LedgerError";
  }
}
