/**
 * Which execute an apply takes its patch from: the last one, when it succeeded and was not applied yet.
 * One that was refused for want of room, or cut short before its job was recorded, never was one.
 */
import { JobtableError } from "../job/errors.js";
import { formatJobId } from "../job/id.js";
import type { Ledger } from "../ledger/ledger.js";
import type { PlanRecord, PlanRun } from "../ledger/plan-records.js";
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
    ({ outcomeJson }, index) => outcomeJson !== null || (jobs[index] ?? null) !== null,
  );
  const run = executes[at];
  if (run === undefined) throw nothingToApply(plan, "it was not executed yet");
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
  const applied = runs.find(
    ({ phase, outcomeJson }) => phase === "apply" && hasApplied(outcomeJson, run.jobId),
  );
  if (applied !== undefined)
    throw nothingToApply(plan, `its patch was applied by ${formatJobId(applied.jobId)} already`);
  return { run, outcome };
}

const WORDS = {
  succeeded: "succeeded",
  failed: "failed",
  timed_out: "timed out",
  cancelled: "was cancelled",
} as const satisfies Record<PhaseOutcome["status"], string>;

function hasApplied(outcomeJson: string | null, executeJobId: string): boolean {
  if (outcomeJson === null) return false;
  const outcome = readOutcome(outcomeJson);
  return outcome.status === "succeeded" && outcome.executeJobId === executeJobId;
}

export function nothingToApply({ name }: Named, why: string): JobtableError {
  return new JobtableError("nothing_to_apply", `plan ${name}: nothing to apply: ${why}`);
}
