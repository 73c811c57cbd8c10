/**
 * What becomes of a phase, as it is recorded with the run. The record stays when the job is forgotten,
 * and says more: of a run whose worker was lost there is no outcome, and the job says why.
 */
import type { TerminalStatus } from "../job/state.js";
import type { Edited } from "./apply/edited.js";
import type { FileSummary } from "./workspace/file-summary.js";

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

/** Of a file that an apply met otherwise than it had left it, when the patch was taken back. */
export function editedNote({ path, inPlace, other }: Edited): string {
  const edited = `${path} was edited after the apply began`;
  if (inPlace === "original")
    return `${edited}: the original is back${other === null ? "" : `, your version is ${other}`}`;
  return `${edited} and is left alone${other === null ? "" : `; the original is ${other}`}`;
}

export function readOutcome(json: string): PhaseOutcome {
  return JSON.parse(json) as PhaseOutcome;
}

/** A record is bounded: of the changes of a whole tree the first ones are listed, and all are in the patch. */
const MAX_LISTED_CHARS = 4 * 1024 * 1024;
/** Of one entry as JSON, its paths apart. */
const ENTRY_CHARS = 120;

/** Those that are listed, and a note where some are not. */
export function listed(
  files: readonly FileSummary[],
  maxChars = MAX_LISTED_CHARS,
): Pick<PhaseOutcome, "files" | "notes"> {
  let left = maxChars;
  const end = files.findIndex(({ path, from }) => {
    // Each character of a path may become six in JSON.
    left -= ENTRY_CHARS + 6 * (path.length + (from?.length ?? 0));
    return left < 0;
  });
  if (end === -1) return { files, notes: [] };
  const note = `${String(files.length)} files changed, of which the first ${String(end)} are listed; the patch has all`;
  return { files: files.slice(0, end), notes: [note] };
}
