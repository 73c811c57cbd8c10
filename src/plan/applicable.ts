/**
 * Which execute an apply takes its patch from: the last one, when it succeeded and was not applied yet.
 * One that was refused for want of room, or cut short before its job was recorded, never was one.
 */
import { JobtableError } from "../job/errors.js";
import { formatJobId } from "../job/id.js";
import type { Job } from "../job/job.js";
import type { Status } from "../job/state.js";
import type { Ledger } from "../ledger/ledger.js";
import type { PlanRecord, PlanRun, PlanRunHead } from "../ledger/plan-records.js";
import { readOutcome, type PhaseOutcome } from "./outcome.js";

type Named = Pick<PlanRecord, "planId" | "name">;

/** @throws JobtableError `nothing_to_apply`, with the reason. */
export async function executedRun(
  ledger: Pick<Ledger, "plans" | "get">,
  plan: Named,
): Promise<{ readonly run: PlanRun; readonly outcome: PhaseOutcome }> {
  const runs = await ledger.plans.runs(plan.planId);
  const last = await firstReal(ledger, executesOf(runs));
  const run = last === null ? null : await ledger.plans.run(last.jobId, { steps: false });
  if (run === null) throw nothingToApply(plan, "it was not executed yet");
  if (run.outcomeJson === null) {
    const { status = "succeeded", errorMessage = null } = last?.job ?? {};
    throw nothingToApply(plan, errorMessage ?? `its last execute ${WITHOUT_OUTCOME[status]}`);
  }
  const outcome = readOutcome(run.outcomeJson);
  const { status, errorMessage } = outcome;
  if (status !== "succeeded") {
    const why = errorMessage === null ? "" : `: ${errorMessage}`;
    throw nothingToApply(plan, `its last execute ${WORDS[status]}${why}`);
  }
  const applied = await applyOf(ledger, runs, run.jobId);
  if (applied !== null)
    throw nothingToApply(plan, `its patch was applied by ${formatJobId(applied)} already`);
  return { run, outcome };
}

export interface NewestPatch {
  readonly patch: Uint8Array;
  /** Of the execute that gave it. */
  readonly jobId: string;
  /** Of an execute that came after it and has none; null: it is of the last one. */
  readonly laterJobId: string | null;
  /** Of the apply that has put it on the workspace; null where none has. */
  readonly appliedJobId: string | null;
}

/** The newest patch of a plan, whatever came after it; null where there is none. */
export async function newestPatch(
  ledger: Pick<Ledger, "plans" | "get">,
  planId: string,
): Promise<NewestPatch | null> {
  const runs = await ledger.plans.runs(planId);
  const at = runs.findIndex(({ patchBytes }) => patchBytes !== null);
  const run = runs[at];
  const patch = run === undefined ? null : await ledger.plans.patch(run.jobId);
  if (run === undefined || patch === null) return null;
  const later = await firstReal(ledger, executesOf(runs.slice(0, at)));
  const appliedJobId = await applyOf(ledger, runs, run.jobId);
  return { patch, jobId: run.jobId, laterJobId: later?.jobId ?? null, appliedJobId };
}

const WORDS = {
  succeeded: "succeeded",
  failed: "failed",
  timed_out: "timed out",
  cancelled: "was cancelled",
} as const satisfies Record<PhaseOutcome["status"], string>;

/** By its job. */
const WITHOUT_OUTCOME = {
  ...WORDS,
  succeeded: "has no outcome",
  queued: "waits for a worker",
  running: "is running",
} as const satisfies Record<Status, string>;

function executesOf(runs: readonly PlanRunHead[]): PlanRunHead[] {
  return runs.filter(({ phase }) => phase === "execute");
}

/** The first one that was more than begun: that has a job, or an outcome; null where none was. */
async function firstReal(
  ledger: Pick<Ledger, "get">,
  runs: readonly PlanRunHead[],
): Promise<{ readonly jobId: string; readonly job: Job | null } | null> {
  const jobs = await ledger.get(runs.map(({ jobId }) => jobId));
  for (const [index, { jobId, hasEnded }] of runs.entries()) {
    const job = jobs[index] ?? null;
    if (hasEnded || job !== null) return { jobId, job };
  }
  return null;
}

/**
 * The job that applied the patch of an execute, or null.
 * @param runs of the plan.
 */
async function applyOf(
  { plans }: Pick<Ledger, "plans">,
  runs: readonly PlanRunHead[],
  executeJobId: string,
): Promise<string | null> {
  for (const { jobId, phase, hasEnded } of runs) {
    if (phase !== "apply" || !hasEnded) continue;
    const outcomeJson = (await plans.run(jobId, { steps: false }))?.outcomeJson ?? null;
    const outcome = outcomeJson === null ? null : readOutcome(outcomeJson);
    if (outcome?.status === "succeeded" && outcome.executeJobId === executeJobId) return jobId;
  }
  return null;
}

export function nothingToApply({ name }: Named, why: string): JobtableError {
  return new JobtableError("nothing_to_apply", `plan ${name}: nothing to apply: ${why}`);
}
