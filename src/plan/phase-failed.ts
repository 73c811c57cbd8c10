/** How a phase ends that does not succeed. The name stands before the colon of the job's error. */
import { JobtableError, LedgerError } from "../job/errors.js";
import { formatJobId, formatPlanId, parseJobId } from "../job/id.js";
import { describe } from "../task/failure.js";
import type { FileConflict } from "./apply/conflicts.js";
import type { LockHolder } from "./apply/lock.js";

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

export function workspaceBusy({ owner, purpose }: LockHolder): PhaseFailed {
  const id = parseJobId(purpose);
  return new PhaseFailed(
    "WorkspaceBusy",
    `another apply has the workspace: ${id === null ? purpose : formatJobId(id)}, in process ${String(owner.pid)} of ${owner.host.split("/")[0] ?? ""}`,
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
  if (!(error instanceof JobtableError) || error instanceof LedgerError) return error;
  return new PhaseFailed("PlanRefused", error.message, { cause: error });
}

/** `ErrorType: message` of whatever ended a phase. */
export function messageOf(error: unknown): string {
  return describe(asThrown(error));
}
