/** A plan on the wire, and with `--json`: ids as people see them, states by their words, times as ISO 8601. */
import { formatJobId, formatPlanId } from "../job/id.js";
import type { PlanRecord } from "../ledger/plan-records.js";
import type { StepReport } from "../plan/step-report.js";
import type { PlanView, RunView } from "../plan/view.js";
import { STATES } from "./wire.js";

/** @param logs whether the steps carry what they wrote. */
export function planJson(
  { plan, execute, apply }: PlanView,
  { logs }: { readonly logs: boolean },
): Record<string, unknown> {
  return {
    ...recordJson(plan),
    execute: execute === null ? null : runJson(execute, logs),
    apply: apply === null ? null : runJson(apply, logs),
  };
}

function recordJson(plan: PlanRecord): Record<string, unknown> {
  return {
    plan_id: formatPlanId(plan.planId),
    name: plan.name,
    workspace: plan.workspace,
    file: plan.file ?? undefined,
    created_at: iso(plan.createdAtMs),
    used_at: iso(plan.usedAtMs),
  };
}

function runJson(run: RunView, logs: boolean): Record<string, unknown> {
  const { outcome } = run;
  return {
    job_id: formatJobId(run.jobId),
    state: STATES[run.status],
    created_at: iso(run.createdAtMs),
    started_at: iso(run.startedAtMs),
    finished_at: iso(run.finishedAtMs),
    worker_id: run.workerId ?? undefined,
    error: run.errorMessage ?? undefined,
    base_commit: outcome?.baseCommit,
    applied: outcome?.executeJobId === undefined ? undefined : formatJobId(outcome.executeJobId),
    files: outcome?.files,
    notes: outcome === null || outcome.notes.length === 0 ? undefined : outcome.notes,
    patch_bytes: run.patchBytes ?? undefined,
    steps: run.steps.map((step) => stepJson(step, logs)),
  };
}

function stepJson(step: StepReport, logs: boolean): Record<string, unknown> {
  return {
    step: step.index,
    id: step.id ?? undefined,
    name: step.name,
    state: step.state,
    exit_code: step.exitCode ?? undefined,
    signal: step.signal ?? undefined,
    started_at: iso(step.startedAtMs),
    finished_at: iso(step.finishedAtMs),
    error: step.errorMessage ?? undefined,
    log_bytes: step.logBytes,
    log: logs ? step.log : undefined,
  };
}

function iso(timeMs: number | null): string | undefined {
  return timeMs === null ? undefined : new Date(timeMs).toISOString();
}
