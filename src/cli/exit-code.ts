/** How a command ends, for scripts that ask: one code per kind of outcome. */
import { JobtableError, LedgerError, type ErrorCode } from "../job/errors.js";

export const EXIT = {
  done: 0,
  /** The job failed, timed out, was cancelled, is unknown or was refused; or a bug. */
  failed: 1,
  /** Wrong use or configuration. */
  misuse: 2,
  /** The ledger can't be reached. */
  unreachable: 3,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

const MISUSE: ReadonlySet<ErrorCode> = new Set([
  "invalid_config",
  "invalid_task",
  "invalid_input",
  "unknown_task",
]);

/** What a command that ended with this error exits with. */
export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof LedgerError) return EXIT.unreachable;
  return error instanceof JobtableError && MISUSE.has(error.code) ? EXIT.misuse : EXIT.failed;
}

/** Wrong use of the command line. */
export function misuse(detail: string): JobtableError {
  return new JobtableError("invalid_config", detail);
}
