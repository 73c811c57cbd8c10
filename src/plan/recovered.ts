/**
 * What a dead process left in a workspace, dealt with and told: an apply that had passed its commit
 * point happened, and its run says so from now on; any other one did not. The journal of an apply goes
 * when its run says what became of it, so that nothing is lost between the two.
 */
import { formatJobId } from "../job/id.js";
import type { Ledger } from "../ledger/ledger.js";
import type { Clock } from "../runtime/clock.js";
import type { Logger } from "../runtime/logger.js";
import { executedRun } from "./applicable.js";
import type { NoteRecovery, RecoverOptions } from "./apply/recover.js";
import type { PlanDefinition } from "./definition.js";
import { editedNote, readOutcome, type PhaseOutcome } from "./outcome.js";
import type { Workspace } from "./workspace/workspace.js";

/** How long the journal of an apply that was committed waits for the store that knows of it. */
const KEEP_MS = 7 * 24 * 3_600_000;

export interface RecoveredPorts {
  readonly ledger: Pick<Ledger, "plans" | "get">;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** @throws JobtableError `apply_failed`: something could not be put back; it can be tried again. */
export async function recoverAndNote(
  ports: RecoveredPorts,
  workspace: Workspace,
  options: Omit<RecoverOptions, "note">,
): Promise<void> {
  await workspace.recover({ ...options, note: recoveryNote(ports, workspace.root) });
}

/** Tells of it in the log, and in the run. */
export function recoveryNote(ports: RecoveredPorts, workspace: string): NoteRecovery {
  return async (recovery, sinceMs) => {
    const { id, outcome, edited } = recovery;
    const isOurs = await record(ports, recovery);
    // The store that knows of it is to learn that it happened.
    if (!isOurs && sinceMs !== null && ports.clock.nowMs() - sinceMs < KEEP_MS) return false;
    const fields = { job_id: formatJobId(id), workspace, outcome, edited };
    if (edited.length === 0) ports.logger.warn(fields, "an apply that was cut short is dealt with");
    else
      ports.logger.error(
        fields,
        "an apply that was cut short is dealt with, but for files that someone edited since",
      );
    return true;
  };
}

/** @returns whether this store has the run. */
async function record(
  { ledger, clock }: RecoveredPorts,
  recovery: Parameters<NoteRecovery>[0],
): Promise<boolean> {
  const run = await ledger.plans.run(recovery.id);
  if (run === null) return false;
  const committed = recovery.outcome === "committed";
  const known = run.outcomeJson === null ? null : readOutcome(run.outcomeJson).status;
  // Written down before the process died; but what the journal says of a success counts more.
  if (known !== null && !(committed && known !== "succeeded")) return true;
  const { name } = JSON.parse(run.definitionJson) as PlanDefinition;
  const executed = await executedRun(ledger, { planId: run.planId, name }).catch(() => null);
  const outcome: PhaseOutcome = {
    status: committed ? "succeeded" : "failed",
    startedAtMs: run.createdAtMs,
    finishedAtMs: clock.nowMs(),
    errorMessage: committed ? null : "WorkerLost: the apply was cut short and taken back",
    files: committed ? (executed?.outcome.files ?? []) : [],
    notes: recovery.edited.map(editedNote),
    ...(committed && executed !== null ? { executeJobId: executed.run.jobId } : {}),
  };
  await ledger.plans.finish({ jobId: run.jobId, outcomeJson: JSON.stringify(outcome) });
  return true;
}
