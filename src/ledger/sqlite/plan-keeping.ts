/** What is kept of plans, in the database thread: one operation inside a transaction. */
import type { NewPlanRun, PlanSeen } from "../plan-records.js";
import { text, unreadable } from "../sql/rows.js";
import { secondRun, unknownPlan } from "../storable-plans.js";
import type { PlanAnswers, PlanOperation } from "./plan-protocol.js";
import type { Transaction } from "./transaction.js";

export function executePlan(
  tx: Transaction,
  operation: PlanOperation,
): PlanAnswers[PlanOperation["verb"]] {
  const { run } = tx;
  switch (operation.verb) {
    case "usePlan":
      return use(tx, operation.plan);
    case "findPlans": {
      const { idOrName, limit } = operation;
      return run.findPlans.all(idOrName, idOrName, limit);
    }
    case "listPlans":
      return run.listPlans.all(operation.limit);
    case "beginRun":
      begin(tx, operation.run);
      return null;
    case "dropRun":
      run.dropRun.run(operation.jobId);
      return null;
    case "writeStep": {
      const { jobId, step, recordJson, log } = operation.step;
      run.writeStep.run(jobId, step, recordJson, log, jobId);
      return null;
    }
    case "finishRun": {
      const { jobId, outcomeJson, patch } = operation.outcome;
      run.finishRun.run(outcomeJson, patch ?? null, jobId);
      return null;
    }
    case "planRun": {
      const found = run.planRun.get(operation.jobId);
      if (found === undefined) return null;
      return { run: found, steps: operation.steps ? run.planSteps.all(operation.jobId) : [] };
    }
    case "planRuns":
      return run.planRuns.all(operation.planId);
    case "planPatch":
      return patchIn(run.planPatch.get(operation.jobId)?.[0] ?? null);
    default:
      return operation satisfies never;
  }
}

function use({ run, now }: Transaction, plan: PlanSeen): PlanAnswers["usePlan"] {
  const { planId, name, workspace, file } = plan;
  const row = run.usePlan.get(planId, name, workspace, file, now, now);
  if (row === undefined) throw new Error("a plan was recorded without an answer");
  if (text(row[0]) === planId) run.forgetPlans.run(planId);
  return row;
}

function begin({ run, now }: Transaction, begun: NewPlanRun): void {
  const { jobId, planId, phase, definitionJson } = begun;
  if (run.hasPlan.get(planId) === undefined) throw unknownPlan(planId);
  if (run.hasRun.get(jobId) !== undefined) throw secondRun(jobId);
  run.forgetRuns.run(planId, planId, planId, planId);
  run.beginRun.run(jobId, planId, phase, now, definitionJson);
}

/** @param cell a patch comes as bytes, which are no `Cell`: no other column has them. */
function patchIn(cell: unknown): Uint8Array | null {
  if (cell === null || cell instanceof Uint8Array) return cell;
  throw unreadable("a patch", typeof cell === "number" || typeof cell === "string" ? cell : null);
}
