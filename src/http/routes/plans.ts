/**
 * The plans that were used on this store before: look, execute, apply, cancel. No file and no command
 * comes in this way: what runs is what the operator's own files say, or what was recorded of them.
 */
import type { FastifyReply, FastifyRequest } from "fastify";
import { JobtableError } from "../../job/errors.js";
import { formatJobId, formatPlanId } from "../../job/id.js";
import type { Phase } from "../../job/job.js";
import { readKnown, type PlansHere } from "../../plan/asked.js";
import type { StartOutcome } from "../../plan/plans.js";
import type { HttpContext } from "../context.js";
import { refusalProblem } from "../errors.js";
import { OPERATIONS } from "../operations.js";
import type { Only } from "../paths.js";
import { planJson } from "../plan-json.js";
import {
  DEFAULT_PLANS,
  type PlanParams,
  type PlanQuery,
  type PlansQuery,
} from "../plan-schemas.js";
import type { Replies } from "../reply.js";
import { planAcceptedJson, STATES, type Problem } from "../wire.js";
import { answerCancel } from "./cancel-answer.js";

const shape = "job" as const;
const DIFF_TYPE = "text/x-diff";

type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

/** @param here to be called while a request is served. */
export function planRoutes(
  { settings }: Pick<HttpContext, "settings">,
  here: () => PlansHere,
  replies: Replies,
  only: Only,
): void {
  const guarded = (handler: Handler): Handler => telling(replies, handler);
  // A page of any site can make a browser send a POST here; with a token to send, it can't.
  const precheck = settings.authToken === null ? refuseWebPages : nothingWrong;
  only(
    { url: "/plans", shape },
    { GET: { schema: OPERATIONS.plans, handler: guarded(list(here, replies)) } },
  );
  only(
    { url: "/plans/:id", shape },
    { GET: { schema: OPERATIONS.plan, handler: guarded(show(here, replies)) } },
  );
  only(
    { url: "/plans/:id/diff", shape },
    { GET: { schema: OPERATIONS.planDiff, handler: guarded(diff(here, replies)) } },
  );
  only(
    { url: "/plans/:id/execute", shape, precheck },
    { POST: { schema: OPERATIONS.executePlan, handler: guarded(execute(here, replies)) } },
  );
  only(
    { url: "/plans/:id/apply", shape, precheck },
    { POST: { schema: OPERATIONS.applyPlan, handler: guarded(apply(here, replies)) } },
  );
  only(
    { url: "/plans/:id/cancel", shape, precheck },
    { POST: { schema: OPERATIONS.cancelPlan, handler: guarded(cancel(here, replies)) } },
  );
}

function list(here: () => PlansHere, replies: Replies): Handler {
  return async (request, reply) => {
    const { limit = DEFAULT_PLANS } = request.query as PlansQuery;
    const views = await here().plans.list(limit);
    const plans = views.map((view) => planJson(view, { logs: false }));
    replies.answer(reply, 200, JSON.stringify({ plans }));
  };
}

function show(here: () => PlansHere, replies: Replies): Handler {
  return async (request, reply) => {
    const { plans } = here();
    const view = await plans.show(await plans.find(idOf(request)));
    const logs = (request.query as PlanQuery).logs === "true";
    replies.answer(reply, 200, JSON.stringify(planJson(view, { logs })));
  };
}

function diff(here: () => PlansHere, replies: Replies): Handler {
  return async (request, reply) => {
    const { plans } = here();
    const plan = await plans.find(idOf(request));
    const patch = await plans.diff(plan);
    if (patch === null)
      replies.refuse(reply, {
        fault: "not_found",
        error: `plan ${plan.name} has no patch: no execute of it succeeded`,
      });
    else
      replies.answer(reply, 200, Buffer.from(patch.buffer, patch.byteOffset, patch.byteLength), {
        type: DIFF_TYPE,
      });
  };
}

function execute(here: () => PlansHere, replies: Replies): Handler {
  return async (request, reply) => {
    const known = here();
    const read = await readKnown(known, idOf(request));
    answerStart(replies, reply, "execute", await known.plans.execute(read));
  };
}

function apply(here: () => PlansHere, replies: Replies): Handler {
  return async (request, reply) => {
    const { plans } = here();
    const plan = await plans.find(idOf(request));
    answerStart(replies, reply, "apply", await plans.apply(plan));
  };
}

function cancel(here: () => PlansHere, replies: Replies): Handler {
  return async (request, reply) => {
    const { plans } = here();
    const plan = await plans.find(idOf(request));
    const outcome = await plans.cancel(plan);
    if (outcome === null || outcome.kind === "unknown") {
      const error = `plan ${plan.name}: no phase of it waits or runs`;
      replies.refuse(reply, { fault: "conflict", error });
      return;
    }
    answerCancel(replies, reply, outcome);
  };
}

function answerStart(
  replies: Replies,
  reply: FastifyReply,
  phase: Phase,
  outcome: StartOutcome,
): void {
  switch (outcome.kind) {
    case "started": {
      const jobId = formatJobId(outcome.job.jobId);
      const planId = formatPlanId(outcome.plan.planId);
      const body = planAcceptedJson({ jobId, planId, phase, state: STATES[outcome.job.status] });
      replies.answer(reply, 202, body, { headers: ["location", `/jobs/${jobId}`] });
      return;
    }
    case "held": {
      const { plan, job } = outcome;
      replies.refuse(reply, {
        fault: "conflict",
        error: `plan ${plan.name}: ${job.phase ?? "a phase"} is ${STATES[job.status]}`,
        jobId: formatJobId(job.jobId),
      });
      return;
    }
    case "full":
      replies.refuse(reply, refusalProblem(outcome, "jobs"));
      return;
    default:
      outcome satisfies never;
  }
}

/** What is wrong with a plan is said whole: who may start it may know. */
const FAULTS = {
  unknown_plan: "not_found",
  nothing_to_apply: "conflict",
  invalid_plan: "invalid_input",
  invalid_workspace: "invalid_input",
} as const;

function telling(replies: Replies, handler: Handler): Handler {
  return async (request, reply) => {
    try {
      await handler(request, reply);
    } catch (error) {
      if (!(error instanceof JobtableError) || !isTold(error.code)) throw error;
      replies.refuse(reply, { fault: FAULTS[error.code], error: error.message });
    }
  };
}

function isTold(code: string): code is keyof typeof FAULTS {
  return Object.hasOwn(FAULTS, code);
}

function refuseWebPages({ headers }: FastifyRequest): Problem | null {
  if (headers.origin === undefined) return null;
  return {
    fault: "bad_request",
    detail: "a web page can't start or cancel plans of a server without auth_token",
  };
}

function nothingWrong(): null {
  return null;
}

function idOf(request: FastifyRequest): string {
  return (request.params as PlanParams).id;
}
