/**
 * Which execute an apply takes its patch from: the last one, when it succeeded and was not applied yet.
 * One that was refused for want of room, or cut short before its job was recorded, never was one.
 */
import { JobtableError } from "../job/errors.js";
import { formatJobId } from "../job/id.js";
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
  const executes = runs.filter(({ phase }) => phase === "execute");
  const jobs = await ledger.get(executes.map(({ jobId }) => jobId));
  const at = executes.findIndex(
    ({ hasEnded }, index) => hasEnded || (jobs[index] ?? null) !== null,
  );
  const last = executes[at];
  const run = last === undefined ? null : await ledger.plans.run(last.jobId, { steps: false });
  if (run === null) throw nothingToApply(plan, "it was not executed yet");
  if (run.outcomeJson === null) {
    const why = jobs[at]?.errorMessage ?? "its last execute has no outcome";
    throw nothingToApply(plan, why);
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

const WORDS = {
  succeeded: "succeeded",
  failed: "failed",
  timed_out: "timed out",
  cancelled: "was cancelled",
} as const satisfies Record<PhaseOutcome["status"], string>;

/**
 * The job that applied the patch of an execute, or null.
 * @param runs of the plan.
 */
export async function applyOf(
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
