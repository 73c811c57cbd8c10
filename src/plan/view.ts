/** A plan as it stands: its record, and the newest run of each phase with what is known of it. */
import type { Job, Phase } from "../job/job.js";
import type { Status } from "../job/state.js";
import type { Ledger } from "../ledger/ledger.js";
import type { PlanRecord, PlanRunWithSteps } from "../ledger/plan-records.js";
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

export interface LookAtPlan {
  /** Default: true. */
  readonly steps?: boolean;
  /** The run to show of its phase, in place of the newest. */
  readonly jobId?: string;
}

export async function viewOf(
  ledger: Ledger,
  plan: PlanRecord,
  { steps = true, jobId: wanted }: LookAtPlan = {},
): Promise<PlanView> {
  const heads = await ledger.plans.runs(plan.planId);
  const jobs = await ledger.get(heads.map(({ jobId }) => jobId));
  const known = heads.map((head, index) => ({ ...head, job: jobs[index] ?? null }));
  const shown = async (phase: Phase): Promise<RunView | null> => {
    // One that was begun and then refused never was a job.
    const all = known.filter((run) => run.phase === phase && (run.job !== null || run.hasEnded));
    const run = all.find(({ jobId }) => jobId === wanted) ?? all[0];
    return run === undefined ? null : lookAt(ledger, run.jobId, run.job, { steps });
  };
  return { plan, execute: await shown("execute"), apply: await shown("apply") };
}

/** One run; null where it is not on record. */
export async function runOf(
  ledger: Ledger,
  jobId: string,
  options: Pick<LookAtPlan, "steps"> = {},
): Promise<RunView | null> {
  const [job = null] = await ledger.get([jobId]);
  return lookAt(ledger, jobId, job, options);
}

async function lookAt(
  { plans }: Ledger,
  jobId: string,
  job: Job | null,
  options: Pick<LookAtPlan, "steps">,
): Promise<RunView | null> {
  const run = await plans.run(jobId, options);
  return run === null ? null : runView(run, job);
}

/** What the run has recorded counts more than its job: that may have been taken for lost just when all was done. */
function runView(run: PlanRunWithSteps, job: Job | null): RunView {
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
    steps: run.steps.map(readStep),
  };
}
