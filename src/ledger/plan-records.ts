/**
 * What a ledger keeps of plans, beside the jobs that run their phases: which plans were seen, and what
 * became of each run: what was asked for, its steps with their logs, its outcome and its patch. The
 * texts are JSON that belongs to src/plan/ and mean nothing here; times are the ledger's own.
 *
 * A run is named by the job that runs it, and outlives it: retention of jobs does not touch plans. Of
 * each plan the newest `KEPT_RUNS` runs are kept, and the newest one that has a patch.
 */
import type { Phase } from "../job/job.js";

/** Of one plan, both phases counted. */
export const KEPT_RUNS = 20;

export interface PlanRecords {
  /**
   * Records that a plan was used, and answers its record: that of its name and workspace, or a new one
   * with the id given. One atomic step, so that two at once get one id.
   */
  use(plan: PlanSeen): Promise<PlanRecord>;

  /** By id (26 characters) or by name: all that it may mean, last used first; at most `limit`. */
  find(idOrName: string, limit: number): Promise<PlanRecord[]>;

  /** Last used first. */
  list(limit: number): Promise<PlanRecord[]>;

  /** Records a run before its job is submitted, and forgets those beyond `KEPT_RUNS`. */
  begin(run: NewPlanRun): Promise<void>;

  /** Records a step of a run, or replaces it. Nothing happens where the run is not known. */
  writeStep(step: StepRecord): Promise<void>;

  /** Records what became of a run; a later call replaces it. Nothing happens where the run is not known. */
  finish(outcome: RunOutcomeRecord): Promise<void>;

  /** Of one run, with its steps in order; null where it is not known. */
  run(jobId: string): Promise<(PlanRun & { readonly steps: readonly StepRecord[] }) | null>;

  /** The runs of a plan, newest first. */
  runs(planId: string): Promise<PlanRun[]>;

  /** Null where there is none. */
  patch(jobId: string): Promise<Uint8Array | null>;
}

export interface PlanSeen {
  /** 26-character ULID, for a plan that is new. */
  readonly planId: string;
  readonly name: string;
  /** Absolute path of the repository. */
  readonly workspace: string;
  /** Absolute path of its file when it was last used; null for one that a program gave. */
  readonly file: string | null;
}

export interface PlanRecord extends PlanSeen {
  readonly createdAtMs: number;
  readonly usedAtMs: number;
}

export interface NewPlanRun {
  /** Of the job that runs it. */
  readonly jobId: string;
  readonly planId: string;
  readonly phase: Phase;
  /** The plan as it was when the run was asked for. */
  readonly definitionJson: string;
}

export interface PlanRun extends NewPlanRun {
  readonly createdAtMs: number;
  /** Null until it has ended. */
  readonly outcomeJson: string | null;
  /** Null where there is no patch. */
  readonly patchBytes: number | null;
}

export interface StepRecord {
  readonly jobId: string;
  /** Place in the phase, from 0. */
  readonly step: number;
  readonly recordJson: string;
  /** What it wrote, bounded by whoever ran it. */
  readonly log: string;
}

export interface RunOutcomeRecord {
  readonly jobId: string;
  readonly outcomeJson: string;
  /** Left out: what there is stays. */
  readonly patch?: Uint8Array;
}
