/**
 * What a ledger keeps of plans, beside the jobs that run their phases: which plans were seen, and what
 * became of each run: what was asked for, its steps with their logs, its outcome and its patch. The
 * texts are JSON that belongs to src/plan/ and mean nothing here; times are the ledger's own.
 *
 * A run is named by the job that runs it, and outlives it: retention of jobs does not touch plans. Of
 * each plan the newest `KEPT_RUNS` runs are kept, and the newest one that has a patch with the newest
 * apply that has ended, which may have put it in place; of plans, with all of their runs, the
 * `KEPT_PLANS` used last.
 *
 * Every verb is atomic and safe to call from any number of processes at once. It rejects with a
 * `LedgerError` as those of the ledger do, or with an `Error` where a value can't be kept: then nothing
 * of the call was recorded (storable-plans.ts has the bounds). What `use`, `begin` and `finish` have
 * answered is on disk; a step may be lost with the power.
 */
import type { Phase } from "../job/job.js";

/** Of one plan, both phases counted. */
export const KEPT_RUNS = 20;
/** Workspaces come and go with checkouts; what nobody used since a thousand others is let go. */
export const KEPT_PLANS = 1_000;

export interface PlanRecords {
  /**
   * Records that a plan was used, and answers its record: that of its name and workspace, or a new one
   * with the id given. One step, so that two at once get one id. Forgets plans beyond `KEPT_PLANS`.
   */
  use(plan: PlanSeen): Promise<PlanRecord>;

  /** By id (26 characters) or by name: all that it may mean, last used first; at most `limit`, up to `MAX_PAGE`. */
  find(idOrName: string, limit: number): Promise<PlanRecord[]>;

  /** Last used first; at most `limit`, up to `MAX_PAGE`. */
  list(limit: number): Promise<PlanRecord[]>;

  /**
   * Records a run before its job is submitted, and forgets those beyond `KEPT_RUNS`. Rejects with an
   * `Error` where the plan is not known, or the job has a run already. A run without an outcome whose
   * job is not there was never submitted, or forgotten by retention.
   */
  begin(run: NewPlanRun): Promise<void>;

  /**
   * Takes back what `begin` recorded, for a run whose job was refused. Nothing happens where the run is
   * not known, or has an outcome.
   */
  drop(jobId: string): Promise<void>;

  /** Records a step of a run, or replaces it. Nothing happens where the run is not known. */
  writeStep(step: StepRecord): Promise<void>;

  /** Records what became of a run; a later call replaces it. Nothing happens where the run is not known. */
  finish(outcome: RunOutcomeRecord): Promise<void>;

  /**
   * One run, with its steps in order, in one look; null where it is not known.
   * @param steps false: they and their logs, which may be large, are not read, and none is answered.
   */
  run(jobId: string, options?: RunLook): Promise<PlanRunWithSteps | null>;

  /** The runs of a plan, without their texts, newest first: by when they began, then by id. */
  runs(planId: string): Promise<PlanRunHead[]>;

  /** Null where there is none. One of no bytes is one. */
  patch(jobId: string): Promise<Uint8Array | null>;
}

/** `name` and `workspace` together are one plan, and so are kept as they are, or refused. */
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
  /** 26-character ULID of the job that runs it. */
  readonly jobId: string;
  readonly planId: string;
  readonly phase: Phase;
  /** The plan as it was when the run was asked for. */
  readonly definitionJson: string;
}

export interface RunLook {
  /** Default: true. */
  readonly steps?: boolean;
}

/** What a run's texts do not say. */
export interface PlanRunHead extends Omit<NewPlanRun, "definitionJson"> {
  readonly createdAtMs: number;
  /** Whether it has an outcome. */
  readonly hasEnded: boolean;
  /** Null where there is no patch. */
  readonly patchBytes: number | null;
}

export interface PlanRun extends NewPlanRun {
  readonly createdAtMs: number;
  /** Null until it has ended. */
  readonly outcomeJson: string | null;
  /** Null where there is no patch. */
  readonly patchBytes: number | null;
}

export interface PlanRunWithSteps extends PlanRun {
  readonly steps: readonly StepRecord[];
}

export interface StepRecord {
  readonly jobId: string;
  /** Place in the phase, from 0 to below `MAX_PLAN_STEPS`. */
  readonly step: number;
  readonly recordJson: string;
  /** What it wrote, bounded by whoever ran it; beyond `MAX_STEP_LOG_CHARS` its end is cut off. */
  readonly log: string;
}

export interface RunOutcomeRecord {
  readonly jobId: string;
  readonly outcomeJson: string;
  /** Left out: what there is stays. */
  readonly patch?: Uint8Array;
}
