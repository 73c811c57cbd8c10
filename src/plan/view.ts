/** A plan as it stands: its record, and the newest run of each phase with what is known of it. */
import type { Job, Phase } from "../job/job.js";
import type { Status } from "../job/state.js";
import type { Ledger } from "../ledger/ledger.js";
import type { PlanRecord, PlanRun } from "../ledger/plan-records.js";
import { readOutcome, type PhaseOutcome } from "./outcome.js";
import { readStep, type StepReport } from "./step-report.js";

export interface PlanView {
  readonly plan: PlanRecord;
  /** Null where it never ran. */
  readonly execute: RunView | null;
  readonly apply: RunView | null;
}

export interface RunView {
  readonly jobId: string;
  readonly phase: Phase;
  readonly status: Status;
  readonly createdAtMs: number;
  readonly startedAtMs: number | null;
  readonly finishedAtMs: number | null;
  readonly workerId: string | null;
  readonly errorMessage: string | null;
  /** Null until it has ended. */
  readonly outcome: PhaseOutcome | null;
  readonly patchBytes: number | null;
  /** Empty where they were not asked for. */
  readonly steps: readonly StepReport[];
}

export async function viewOf(
  ledger: Ledger,
  plan: PlanRecord,
  { steps = true }: { readonly steps?: boolean } = {},
): Promise<PlanView> {
  const runs = await ledger.plans.runs(plan.planId);
  const jobs = await ledger.get(runs.map(({ jobId }) => jobId));
  const newest = async (phase: Phase): Promise<RunView | null> => {
    for (const [index, run] of runs.entries()) {
      const job = jobs[index] ?? null;
      // One that was begun and then refused never was a job.
      if (run.phase === phase && (job !== null || run.outcomeJson !== null))
        return runView(run, job, steps ? await stepsOf(ledger, run.jobId) : []);
    }
    return null;
  };
  return { plan, execute: await newest("execute"), apply: await newest("apply") };
}

async function stepsOf(ledger: Ledger, jobId: string): Promise<StepReport[]> {
  const found = await ledger.plans.run(jobId);
  return (found?.steps ?? []).map(readStep);
}

/** What the run has recorded counts more than its job: that may have been taken for lost just when all was done. */
function runView(run: PlanRun, job: Job | null, steps: readonly StepReport[]): RunView {
  const outcome = run.outcomeJson === null ? null : readOutcome(run.outcomeJson);
  return {
    jobId: run.jobId,
    phase: run.phase,
    status: outcome?.status ?? job?.status ?? "failed",
    createdAtMs: run.createdAtMs,
    startedAtMs: outcome?.startedAtMs ?? job?.startedAtMs ?? null,
    finishedAtMs: outcome?.finishedAtMs ?? job?.finishedAtMs ?? null,
    workerId: job?.workerId ?? null,
    errorMessage: outcome === null ? (job?.errorMessage ?? null) : outcome.errorMessage,
    outcome,
    patchBytes: run.patchBytes,
    steps,
  };
}
