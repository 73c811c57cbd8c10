/** How a phase ends that does not succeed. The name stands before the colon of the job's error. */
import { JobtableError, LedgerError } from "../job/errors.js";
import { formatPlanId } from "../job/id.js";
import { describe } from "../task/failure.js";
import { holderText, WorkspaceBusy } from "./apply/busy.js";
import type { FileConflict } from "./apply/conflicts.js";
import type { Edited } from "./apply/edited.js";
import type { BusyLock } from "./apply/lock.js";
import { editedNote } from "./outcome.js";

type Name = "StepFailed" | "PatchConflict" | "WorkspaceBusy" | "PlanGone" | "PlanRefused";

export class PhaseFailed extends Error {
  constructor(name: Name, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = name;
    // It says all there is; where in the code it was found out concerns nobody, and no log.
    delete this.stack;
  }
}

/** More are in the plan's own record. */
const MAX_NAMED = 5;

export function patchConflict(conflicts: readonly FileConflict[]): PhaseFailed {
  const named = conflicts
    .slice(0, MAX_NAMED)
    .map(({ file, line, reason }) => `${file}${line === null ? "" : `:${String(line)}`} ${reason}`);
  const more = conflicts.length - named.length;
  return new PhaseFailed(
    "PatchConflict",
    `the patch no longer fits, nothing was changed: ${named.join("; ")}${more > 0 ? `; and ${String(more)} more` : ""}`,
  );
}

export function workspaceBusy(busy: BusyLock): PhaseFailed {
  return new PhaseFailed("WorkspaceBusy", `another process has the workspace: ${holderText(busy)}`);
}

/** A phase whose patch was taken back from files that somebody had edited meanwhile. */
export function editedMeanwhile(error: unknown, edited: readonly Edited[]): PhaseFailed {
  const named = edited.slice(0, MAX_NAMED).map(editedNote);
  const more = edited.length - named.length;
  return new PhaseFailed(
    "StepFailed",
    `${messageOf(error)}; the patch was taken back; ${named.join("; ")}${more > 0 ? `; and ${String(more)} more` : ""}`,
    { cause: error },
  );
}

export function planGone(planId: string): PhaseFailed {
  return new PhaseFailed(
    "PlanGone",
    `the store keeps no record of this run of ${formatPlanId(planId)}`,
  );
}

/** Whatever ended a phase, as it is thrown: what the registry knows is no bug, and has no type worth naming. */
export function asThrown(error: unknown): unknown {
  if (error instanceof WorkspaceBusy) return workspaceBusy(error);
  if (!(error instanceof JobtableError) || error instanceof LedgerError) return error;
  const advice = error.code === "invalid_workspace" && isAbsent(error.cause) ? SAME_PATH : "";
  return new PhaseFailed("PlanRefused", `${error.message}${advice}`, { cause: error });
}

/** Of several machines on one store any may get the job. */
const SAME_PATH =
  ": workers that run plans need it under the same path; start the others with --plans=false";

function isAbsent(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && cause.code === "ENOENT";
}

/** `ErrorType: message` of whatever ended a phase. */
export function messageOf(error: unknown): string {
  return describe(asThrown(error));
}
