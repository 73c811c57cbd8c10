/** What the library offers for plans. docs/plans.md says what plans are. */
import type { Job } from "../job/job.js";
import type { CancelOutcome } from "../ledger/ledger.js";
import type { PlanRecord } from "../ledger/plan-records.js";
import type { FileConflict } from "../plan/apply/conflicts.js";
import type { PlanObject } from "../plan/file/schema.js";
import type { PlanView } from "../plan/view.js";
import type { FileSummary } from "../plan/workspace/file-summary.js";

/**
 * Names a plan: its id in either spelling, its name, the path of its file, or its record. What no plan
 * has as its id or name is a path, where it ends in .yaml, .yml or .json, or is a file; a text with a
 * slash in it always is. Relative paths count from the current folder, whose repository is the workspace
 * of a file that names none.
 */
export type PlanRef = string | Pick<PlanRecord, "planId">;

/** What became of the wish to run a phase. */
export type PlanStart =
  /** It is on record as this job, which `wait` waits for; a worker for plans runs it. */
  | { readonly kind: "started"; readonly plan: PlanRecord; readonly job: Job }
  /** This job runs a phase of the plan, or waits to: one at a time. */
  | { readonly kind: "held"; readonly plan: PlanRecord; readonly job: Job };

/** Whether the patch would fit now. */
export interface PlanCheck {
  readonly fits: boolean;
  /** Where it does not. */
  readonly conflicts: readonly FileConflict[];
  /** What the patch changes. */
  readonly files: readonly FileSummary[];
}

/**
 * The plans of the store. What is thrown besides is as `get` of the jobtable; a plan that is not known
 * is `unknown_plan`, as is a name that is in several workspaces.
 */
export interface JobtablePlans {
  /**
   * Records the execute of a plan as a job. Of a plan that was used before, its file runs as it is now,
   * where it can still be read; else the plan as it was then.
   * @param plan or the plan itself, as a file would hold it; a relative `workspace` counts from the
   *   current folder, whose repository it is where none is named.
   * @throws JobtableError `invalid_plan`, `invalid_workspace`, `queue_full`
   */
  execute(plan: PlanRef | PlanObject): Promise<PlanStart>;
  /**
   * Records as a job that the patch of the last execute is to be put on the workspace.
   * @throws JobtableError `nothing_to_apply`, `queue_full`
   */
  apply(plan: PlanRef): Promise<PlanStart>;
  /**
   * Whether the patch fits now. Changes nothing; the workspace must be on this machine.
   * @throws JobtableError `nothing_to_apply`, `invalid_workspace`
   */
  check(plan: PlanRef): Promise<PlanCheck>;
  /** The plan with the newest run of each phase, their steps and logs. */
  show(plan: PlanRef): Promise<PlanView>;
  /** The newest patch, for `git apply`; null where no execute gave one. */
  diff(plan: PlanRef): Promise<Uint8Array | null>;
  /**
   * Last used first, without their steps; `limit` is 1 to 1000, default 100.
   * @throws JobtableError `invalid_input` for another limit.
   */
  list(options?: { readonly limit?: number }): Promise<PlanView[]>;
  /** Cancels the phase that runs or waits; null where none does. */
  cancel(plan: PlanRef): Promise<CancelOutcome | null>;
}
