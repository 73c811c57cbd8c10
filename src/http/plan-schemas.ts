/** The shapes of plans on the wire: what plan-json.ts makes, and what is asked with. */
import Type, { type Static, type TSchema } from "typebox";
import { ALL_STATES } from "./wire.js";

export const DEFAULT_PLANS = 50;
/** Each takes a few looks at the ledger. */
const MAX_PLANS = 200;

const words = (values: readonly string[]): TSchema => Type.Unsafe({ type: "string", enum: values });
const time = Type.String({ format: "date-time" });
const jobId = Type.String({ pattern: "^job_[0-9A-HJKMNP-TV-Z]{26}$" });
const planId = Type.String({ pattern: "^plan_[0-9A-HJKMNP-TV-Z]{26}$" });
const PHASES = ["execute", "apply"];
const STEP_STATES = ["running", "succeeded", "failed", "timed_out", "cancelled", "skipped"];
const orNull = (schema: TSchema): TSchema => Type.Union([schema, Type.Null()]);
const lines = orNull(Type.Integer({ description: "Null for a binary file" }));

export const PlanParams = Type.Object({
  id: Type.String({
    description: "plan_ + ULID, the ULID alone, or a name that only one plan has",
  }),
});
export type PlanParams = Static<typeof PlanParams>;
export const PlanQuery = Type.Object({
  logs: Type.Optional(
    Type.Unsafe<string>({
      type: "string",
      enum: ["true", "false"],
      description: "Whether the steps carry what they wrote",
    }),
  ),
});
export type PlanQuery = Static<typeof PlanQuery>;
export const PlansQuery = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_PLANS, default: DEFAULT_PLANS })),
});
export type PlansQuery = Static<typeof PlansQuery>;

const PlanStep = Type.Object({
  step: Type.Integer({ minimum: 0 }),
  id: Type.Optional(Type.String()),
  name: Type.String(),
  state: words(STEP_STATES),
  exit_code: Type.Optional(Type.Integer()),
  signal: Type.Optional(Type.String()),
  started_at: Type.Optional(time),
  finished_at: Type.Optional(time),
  error: Type.Optional(Type.String()),
  log_bytes: Type.Integer({ minimum: 0, description: "What it wrote in all" }),
  log: Type.Optional(Type.String()),
});

const PlanRun = Type.Object({
  job_id: jobId,
  state: words(ALL_STATES),
  created_at: time,
  started_at: Type.Optional(time),
  finished_at: Type.Optional(time),
  worker_id: Type.Optional(Type.String()),
  error: Type.Optional(Type.String()),
  base_commit: Type.Optional(Type.String()),
  applied: Type.Optional(Type.String({ description: "The job whose patch was applied" })),
  files: Type.Optional(
    Type.Array(
      Type.Object({
        path: Type.String(),
        from: orNull(Type.String()),
        change: words(["added", "deleted", "modified", "renamed", "mode", "type"]),
        insertions: lines,
        deletions: lines,
      }),
    ),
  ),
  notes: Type.Optional(Type.Array(Type.String())),
  patch_bytes: Type.Optional(Type.Integer({ minimum: 0 })),
  steps: Type.Array(PlanStep, { description: "Empty in a list" }),
});

export const PLAN_SCHEMAS = [
  Type.Object(
    {
      plan_id: planId,
      name: Type.String(),
      workspace: Type.String(),
      file: Type.Optional(Type.String()),
      created_at: time,
      used_at: time,
      execute: orNull(PlanRun),
      apply: orNull(PlanRun),
    },
    { $id: "Plan" },
  ),
  Type.Object({ plans: Type.Array(Type.Ref("Plan#")) }, { $id: "PlanList" }),
  Type.Object(
    {
      job_id: jobId,
      plan_id: planId,
      phase: words(PHASES),
      state: words(ALL_STATES),
      poll_url: Type.String(),
      result_url: Type.String(),
    },
    { $id: "PlanAccepted" },
  ),
] as const;
