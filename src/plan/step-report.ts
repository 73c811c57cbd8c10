/** A step as it is recorded with its run, while it runs and once it has ended. */
import type { StepRecord } from "../ledger/plan-records.js";
import type { EndedStep, StepState } from "./steps/api.js";

export interface StepReport extends Omit<EndedStep, "state"> {
  readonly state: StepState | "running";
}

export function stepRecord(jobId: string, { log, ...report }: StepReport): StepRecord {
  return { jobId, step: report.index, recordJson: JSON.stringify(report), log };
}

export function readStep({ recordJson, log }: StepRecord): StepReport {
  return { ...(JSON.parse(recordJson) as Omit<StepReport, "log">), log };
}
