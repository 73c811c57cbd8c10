/**
 * What becomes of a phase, as it is recorded with the run. The record stays when the job is forgotten,
 * and says more: of a run whose worker was lost there is no outcome, and the job says why.
 */
import type { TerminalStatus } from "../job/state.js";
import type { FileSummary } from "./workspace/outcome.js";

export interface PhaseOutcome {
  readonly status: TerminalStatus;
  /** By the clock of the process that ran it, ms since the Unix epoch. */
  readonly startedAtMs: number;
  readonly finishedAtMs: number;
  /** `ErrorType: message`; null where it succeeded or was cancelled. */
  readonly errorMessage: string | null;
  /** Of an execute: the commit that its sandbox started from. */
  readonly baseCommit?: string;
  /** What the patch changes; of an apply, what it has put on the workspace. */
  readonly files: readonly FileSummary[];
  /** What the user should know, one sentence each. */
  readonly notes: readonly string[];
  /** Of an apply: the job whose patch it was. */
  readonly executeJobId?: string;
}

export function readOutcome(json: string): PhaseOutcome {
  return JSON.parse(json) as PhaseOutcome;
}
