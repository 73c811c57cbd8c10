/** What the OpenAPI document says of each call, and by which schema its query and parameters are checked. */
import type { FastifySchema } from "fastify";
import { PlanParams, PlanQuery, PlansQuery } from "./plan-schemas.js";
import {
  errors,
  JobParams,
  ListQuery,
  reply,
  RetryHeaders,
  SubmitHeaders,
  TaskParams,
  WaitQuery,
} from "./schemas.js";

const run = {
  tags: ["tasks"],
  summary: "Run a task now",
  response: {
    200: reply("Success", "What the task returned"),
    ...errors("EnvelopeError", 400, 404, 413, 415, 422, 429, 504),
  },
};

const startPlan = {
  tags: ["plans"],
  params: PlanParams,
  response: {
    202: reply("PlanAccepted", "Recorded", ["Location"]),
    ...errors("JobError", 400, 404, 409, 422, 429),
  },
};

export const OPERATIONS = {
  run: { ...run, operationId: "run", params: TaskParams },
  runOnly: { ...run, operationId: "runOnly" },

  submit: {
    tags: ["jobs"],
    operationId: "submit",
    summary: "Accept a job",
    headers: SubmitHeaders,
    response: {
      202: reply("Accepted", "Recorded, now or before by a request with the same key", [
        "Location",
        "Idempotent-Replayed",
      ]),
      ...errors("JobError", 400, 413, 415, 422, 429),
    },
  },
  list: {
    tags: ["jobs"],
    operationId: "list",
    summary: "Jobs, newest first",
    querystring: ListQuery,
    response: { 200: reply("JobList", "One page"), ...errors("JobError", 422) },
  },
  show: {
    tags: ["jobs"],
    operationId: "job",
    summary: "One look at a job",
    params: JobParams,
    response: { 200: reply("Job", "The job"), ...errors("JobError", 404) },
  },
  cancel: {
    tags: ["jobs"],
    operationId: "cancel",
    summary: "Cancel a job",
    params: JobParams,
    response: {
      200: reply("Cancelled", "It was waiting, and is cancelled"),
      202: reply("Cancelled", "It is running, and was told"),
      ...errors("JobError", 404, 409),
    },
  },
  retry: {
    tags: ["jobs"],
    operationId: "retry",
    summary: "Run once more what has ended, as a new job",
    params: JobParams,
    headers: RetryHeaders,
    response: {
      202: reply(
        "Accepted",
        "The new job is recorded, now or before by a retry with the same key",
        ["Location", "Idempotent-Replayed"],
      ),
      ...errors("JobError", 404, 409, 422, 429),
    },
  },
  wait: {
    tags: ["jobs"],
    operationId: "wait",
    summary: "Look again when the state has changed",
    params: JobParams,
    querystring: WaitQuery,
    response: { 200: reply("Job", "The job, changed or not"), ...errors("JobError", 404) },
  },
  result: {
    tags: ["jobs"],
    operationId: "result",
    summary: "What the task returned",
    params: JobParams,
    response: {
      200: reply("Success", "What the task returned"),
      ...errors("JobError", 404, 409),
    },
  },

  plans: {
    tags: ["plans"],
    operationId: "plans",
    summary: "Plans, last used first",
    querystring: PlansQuery,
    response: { 200: reply("PlanList", "The plans"), ...errors("JobError", 422) },
  },
  plan: {
    tags: ["plans"],
    operationId: "plan",
    summary: "A plan, with the newest run of each phase",
    params: PlanParams,
    querystring: PlanQuery,
    response: { 200: reply("Plan", "The plan"), ...errors("JobError", 404, 422) },
  },
  planDiff: {
    tags: ["plans"],
    operationId: "planDiff",
    summary: "The newest patch of a plan",
    params: PlanParams,
    response: {
      200: {
        description: "For git apply",
        content: { "text/x-diff": { schema: { type: "string", format: "binary" } } },
      },
      ...errors("JobError", 404),
    },
  },
  executePlan: {
    ...startPlan,
    operationId: "executePlan",
    summary: "Execute a plan that was used before, as a job",
  },
  applyPlan: {
    ...startPlan,
    operationId: "applyPlan",
    summary: "Apply the patch of the last execute, as a job",
  },
  cancelPlan: {
    tags: ["plans"],
    operationId: "cancelPlan",
    summary: "Cancel the phase that waits or runs",
    params: PlanParams,
    response: {
      200: reply("Cancelled", "It was waiting, and is cancelled"),
      202: reply("Cancelled", "It is running, and was told"),
      ...errors("JobError", 404, 409),
    },
  },

  diagnostics: {
    tags: ["diagnostics"],
    operationId: "diagnostics",
    summary: "What is wrong, and what to do",
    response: { 200: reply("Diagnostics", "One look at everything"), ...errors("EnvelopeError") },
  },
  healthz: {
    tags: ["service"],
    operationId: "healthz",
    summary: "The process is alive",
    response: { 200: reply("Alive", "Alive") },
  },
  ready: {
    tags: ["service"],
    operationId: "ready",
    summary: "It can take work",
    response: {
      200: reply("Readiness", "Ready"),
      503: reply("Readiness", "Starting, draining, or cut off from the ledger"),
    },
  },
  metrics: {
    tags: ["service"],
    operationId: "metrics",
    summary: "Prometheus text",
    response: {
      200: { description: "Figures", content: { "text/plain": { schema: { type: "string" } } } },
    },
  },
  openapi: {
    tags: ["service"],
    operationId: "openapi",
    summary: "This description",
    response: { 200: { description: "OpenAPI 3.1", type: "object" } },
  },
} as const satisfies Record<string, FastifySchema>;
