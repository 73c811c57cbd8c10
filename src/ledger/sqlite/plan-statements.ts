/** The statements of what is kept of plans; statements.ts has the rules. */
import { KEPT_PLANS, KEPT_RUNS } from "../plan-records.js";
import { HEAD_COLUMNS, PLAN_COLUMNS, RUN_COLUMNS } from "../sql/plan-rows.js";

const PLAN = PLAN_COLUMNS.join(", ");
/** How large a patch is stands in its row's header: nothing of it is read. */
const RUN = `${RUN_COLUMNS.join(", ")}, octet_length(patch)`;
const HEAD = `${HEAD_COLUMNS.join(", ")}, outcome_json IS NOT NULL, octet_length(patch)`;
const LAST_USED_FIRST = "ORDER BY used_at DESC, plan_id DESC";
const NEWEST_FIRST = "ORDER BY created_at DESC, job_id DESC";
const runsOfPlan = "plan_runs INDEXED BY ix_plan_runs_plan_id WHERE plan_id = ?";
/** Normally there is one: what one transaction forgets is bounded whatever was written past the ledger. */
const FORGOTTEN_PLANS = 10;

export const PLAN_SQL = {
  /** Binds PLAN_COLUMNS. */
  usePlan: `INSERT INTO plans (${PLAN}) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (name, workspace) DO UPDATE SET file = excluded.file, used_at = excluded.used_at
    RETURNING ${PLAN}`,
  /** Binds the plan that stays, whatever the clock says. */
  forgetPlans: `DELETE FROM plans WHERE plan_id IN (
    SELECT plan_id FROM plans INDEXED BY ix_plans_used_at WHERE plan_id <> ?
    ${LAST_USED_FIRST} LIMIT ${String(FORGOTTEN_PLANS)} OFFSET ${String(KEPT_PLANS - 1)})`,
  /** Binds the text twice, and the limit. */
  findPlans: `SELECT ${PLAN} FROM plans WHERE plan_id = ? OR name = ? ${LAST_USED_FIRST} LIMIT ?`,
  listPlans: `SELECT ${PLAN} FROM plans INDEXED BY ix_plans_used_at ${LAST_USED_FIRST} LIMIT ?`,
  hasPlan: "SELECT 1 FROM plans WHERE plan_id = ?",

  hasRun: "SELECT 1 FROM plan_runs WHERE job_id = ?",
  /** Makes room for one more. Binds the plan four times. */
  forgetRuns: `DELETE FROM ${runsOfPlan}
    AND job_id NOT IN (SELECT job_id FROM ${runsOfPlan} ${NEWEST_FIRST} LIMIT ${String(KEPT_RUNS - 1)})
    AND job_id NOT IN (SELECT job_id FROM ${runsOfPlan} AND patch IS NOT NULL ${NEWEST_FIRST} LIMIT 1)
    AND job_id NOT IN (SELECT job_id FROM ${runsOfPlan} AND phase = 'apply' AND outcome_json IS NOT NULL
      ${NEWEST_FIRST} LIMIT 1)`,
  /** Binds RUN_COLUMNS up to definition_json. */
  beginRun: `INSERT INTO plan_runs (job_id, plan_id, phase, created_at, definition_json)
    VALUES (?, ?, ?, ?, ?)`,
  dropRun: "DELETE FROM plan_runs WHERE job_id = ? AND outcome_json IS NULL",
  /** Binds job_id, step, record_json, log, and job_id. */
  writeStep: `INSERT INTO plan_steps (job_id, step, record_json, log)
    SELECT ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM plan_runs WHERE job_id = ?)
    ON CONFLICT (job_id, step) DO UPDATE SET record_json = excluded.record_json, log = excluded.log`,
  /** Binds the outcome, the patch (null: what there is stays), and job_id. */
  finishRun: `UPDATE plan_runs SET outcome_json = ?, patch = coalesce(?, patch) WHERE job_id = ?`,
  planRun: `SELECT ${RUN} FROM plan_runs WHERE job_id = ?`,
  planSteps: "SELECT step, record_json, log FROM plan_steps WHERE job_id = ? ORDER BY step",
  planRuns: `SELECT ${HEAD} FROM ${runsOfPlan} ${NEWEST_FIRST}`,
  planPatch: "SELECT patch FROM plan_runs WHERE job_id = ?",
} as const;
