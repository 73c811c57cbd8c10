/** What the ledger and its thread say to each other about plans; protocol.ts has the rest. */
import type { NewPlanRun, PlanSeen, RunOutcomeRecord, StepRecord } from "../plan-records.js";
import type { Cell } from "../sql/rows.js";

/** All values are storable: the main thread has seen to it. */
export type PlanOperation =
  | { readonly verb: "usePlan"; readonly plan: PlanSeen }
  | { readonly verb: "findPlans"; readonly idOrName: string; readonly limit: number }
  | { readonly verb: "listPlans"; readonly limit: number }
  | { readonly verb: "beginRun"; readonly run: NewPlanRun }
  | { readonly verb: "dropRun"; readonly jobId: string }
  | { readonly verb: "writeStep"; readonly step: StepRecord }
  | { readonly verb: "finishRun"; readonly outcome: RunOutcomeRecord }
  | { readonly verb: "planRun"; readonly jobId: string; readonly steps: boolean }
  | { readonly verb: "planRuns"; readonly planId: string }
  | { readonly verb: "planPatch"; readonly jobId: string };

/** Rows have the columns of sql/plan-rows.ts. */
export interface PlanAnswers {
  usePlan: Cell[];
  findPlans: readonly Cell[][];
  listPlans: readonly Cell[][];
  beginRun: null;
  dropRun: null;
  writeStep: null;
  finishRun: null;
  planRun: { readonly run: Cell[]; readonly steps: readonly Cell[][] } | null;
  planRuns: readonly Cell[][];
  planPatch: Uint8Array | null;
}
