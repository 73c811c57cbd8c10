/** The order of the columns of plans and their runs as they are read, and what their rows become. */
import type { PlanRecord, PlanRun, PlanRunHead, StepRecord } from "../plan-records.js";
import { text, textOrNull, toPhase, type Cell, type CellReader } from "./rows.js";

/** The columns of a plan as they are read, in this order. */
export const PLAN_COLUMNS = [
  "plan_id",
  "name",
  "workspace",
  "file",
  "created_at",
  "used_at",
] as const;

/** The columns of a run as they are read, in this order; then comes the size of its patch, or null. */
export const RUN_COLUMNS = [
  "job_id",
  "plan_id",
  "phase",
  "created_at",
  "definition_json",
  "outcome_json",
] as const;

/** Those that every look at a run has; of runs without their texts, whether there is an outcome comes next. */
export const HEAD_COLUMNS = RUN_COLUMNS.slice(0, 4);

/** Where what follows a run stands in its row. */
export const AFTER_RUN = RUN_COLUMNS.length + 1;

/** What reads rows: the columns of a plan or of a run first; more may follow. */
export function planReader({ number, time }: CellReader): {
  readonly toPlan: (row: readonly Cell[]) => PlanRecord;
  readonly toHead: (row: readonly Cell[]) => PlanRunHead;
  readonly toRun: (row: readonly Cell[]) => PlanRun;
  readonly toStep: (jobId: string, row: readonly Cell[]) => StepRecord;
} {
  return {
    toPlan: (row) => ({
      planId: text(row[0]),
      name: text(row[1]),
      workspace: text(row[2]),
      file: textOrNull(row[3]),
      createdAtMs: time(row[4]),
      usedAtMs: time(row[5]),
    }),
    toHead: (row) => ({
      jobId: text(row[0]),
      planId: text(row[1]),
      phase: toPhase(row[2]),
      createdAtMs: time(row[3]),
      hasEnded: number(row[4]) !== 0,
      patchBytes: row[5] === null ? null : number(row[5]),
    }),
    toRun: (row) => ({
      jobId: text(row[0]),
      planId: text(row[1]),
      phase: toPhase(row[2]),
      createdAtMs: time(row[3]),
      definitionJson: text(row[4]),
      outcomeJson: textOrNull(row[5]),
      patchBytes: row[6] === null ? null : number(row[6]),
    }),
    toStep: (jobId, row) => ({
      jobId,
      step: number(row[0]),
      recordJson: text(row[1]),
      log: text(row[2]),
    }),
  };
}
