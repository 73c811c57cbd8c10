/** How a command ends, for scripts that ask: one code per kind of outcome. */
import type { Refused } from "../client/replies.js";
import { ClientError } from "../client/transport.js";
import { JobtableError, LedgerError, type ErrorCode } from "../job/errors.js";

export const EXIT = {
  done: 0,
  /** The job failed, timed out, was cancelled, is unknown or was refused; or a bug. */
  failed: 1,
  /** Wrong use or configuration. */
  misuse: 2,
  /** The ledger, or the server before it, can't be reached. */
  unreachable: 3,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

const MISUSE: ReadonlySet<ErrorCode> = new Set([
  "invalid_config",
  "invalid_task",
  "invalid_plan",
  "invalid_workspace",
  "invalid_input",
  "unknown_task",
]);

const OF_REASON: Readonly<Record<ClientError["reason"], ExitCode>> = {
  unreachable: EXIT.unreachable,
  unavailable: EXIT.unreachable,
  unauthorized: EXIT.misuse,
  unexpected: EXIT.failed,
};

/** What a server refuses because of what was asked, not because of how things stand. */
const MISUSE_STATUSES: ReadonlySet<number> = new Set([400, 413, 415, 422]);

export function exitCodeOfRefusal({ status }: Refused): ExitCode {
  return MISUSE_STATUSES.has(status) ? EXIT.misuse : EXIT.failed;
}

/** What a command that ended with this error exits with. */
export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof LedgerError) return EXIT.unreachable;
  if (error instanceof ClientError) return OF_REASON[error.reason];
  return error instanceof JobtableError && MISUSE.has(error.code) ? EXIT.misuse : EXIT.failed;
}

/** Wrong use of the command line. */
export function misuse(detail: string): JobtableError {
  return new JobtableError("invalid_config", detail);
}
