/**
 * What a dead process left in a workspace, dealt with and told: an apply that had passed its commit
 * point happened, and its run says so from now on; any other one did not.
 */
import { formatJobId } from "../job/id.js";
import type { Ledger } from "../ledger/ledger.js";
import type { Clock } from "../runtime/clock.js";
import type { Logger } from "../runtime/logger.js";
import { executedRun } from "./applicable.js";
import type { Recovery, RecoverOptions } from "./apply/recover.js";
import type { PlanDefinition } from "./definition.js";
import type { PhaseOutcome } from "./outcome.js";
import type { Workspace } from "./workspace/workspace.js";

export interface RecoveredPorts {
  readonly ledger: Pick<Ledger, "plans" | "get">;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** @throws JobtableError `apply_failed`: something could not be put back; it can be tried again. */
export async function noteRecoveries(
  ports: RecoveredPorts,
  workspace: Workspace,
  options: RecoverOptions,
): Promise<readonly Recovery[]> {
  const recoveries = await workspace.recover(options);
  for (const recovery of recoveries) {
    const { id, outcome, edited } = recovery;
    const fields = { job_id: formatJobId(id), workspace: workspace.root, outcome, edited };
    if (edited.length === 0) ports.logger.warn(fields, "an apply that was cut short is dealt with");
    else
      ports.logger.error(
        fields,
        "an apply that was cut short is dealt with, but for files that someone edited since",
      );
    await record(ports, recovery);
  }
  return recoveries;
}

async function record({ ledger, clock }: RecoveredPorts, recovery: Recovery): Promise<void> {
  const run = await ledger.plans.run(recovery.id);
  // Of another store, or written down before the process died.
  if (run?.outcomeJson !== null) return;
  const { name } = JSON.parse(run.definitionJson) as PlanDefinition;
  const executed = await executedRun(ledger, { planId: run.planId, name }).catch(() => null);
  const committed = recovery.outcome === "committed";
  const outcome: PhaseOutcome = {
    status: committed ? "succeeded" : "failed",
    startedAtMs: run.createdAtMs,
    finishedAtMs: clock.nowMs(),
    errorMessage: committed ? null : "WorkerLost: the apply was cut short and taken back",
    files: committed ? (executed?.outcome.files ?? []) : [],
    notes: recovery.edited.map(
      ({ path, other }) =>
        `${path} was edited after the apply began and is left alone${other === null ? "" : `; the other version is ${other}`}`,
    ),
    ...(committed && executed !== null ? { executeJobId: executed.run.jobId } : {}),
  };
  await ledger.plans.finish({ jobId: run.jobId, outcomeJson: JSON.stringify(outcome) });
}
