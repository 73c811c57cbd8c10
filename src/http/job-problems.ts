/** Why a job can't be given, cancelled, retried or found: the same whether it is asked for over HTTP or over a store. */
import { formatPlanId } from "../job/id.js";
import type { Job } from "../job/job.js";
import { STATES, type Problem } from "./wire.js";

/** @param asked the id as it was asked for. */
export function jobNotFound(asked: string): Problem {
  return { fault: "not_found", error: `job not found: ${asked}` };
}

export function notFinished({ status }: Pick<Job, "status">): Problem {
  return { fault: "conflict", error: `job not finished (state: ${STATES[status]})` };
}

/** Of a job that has no result, and may never have one. */
export function withoutResult(job: Job): Problem {
  const reason = job.errorMessage ?? (job.status === "cancelled" ? "cancelled" : undefined);
  return { ...notFinished(job), ...(reason === undefined ? {} : { reason }) };
}

export function alreadyFinished({ status }: Pick<Job, "status">): Problem {
  return { fault: "conflict", error: `job already finished (state: ${STATES[status]})` };
}

/** Of a job that runs a phase of a plan. */
export function retryOfPlan({ planId, phase }: Pick<Job, "planId" | "phase">): Problem {
  const id = planId === null ? "" : ` ${formatPlanId(planId)}`;
  return {
    fault: "conflict",
    error: "a plan's job can't be retried",
    detail: `a plan runs one phase at a time: run jobtable plan ${phase ?? "execute"}${id} instead`,
  };
}

/** @param asked the id as it was asked for. */
export function payloadGone(asked: string): Problem {
  return {
    fault: "conflict",
    error: `job's input is gone: ${asked}`,
    detail: "a store in memory forgets the input of a job that has ended: submit it anew",
  };
}
