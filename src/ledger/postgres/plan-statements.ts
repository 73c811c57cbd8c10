/** The statements of what is kept of plans; statements.ts has the rules. A plan's row is locked before its runs. */
import { KEPT_PLANS, KEPT_RUNS } from "../plan-records.js";
import { HEAD_COLUMNS, PLAN_COLUMNS, RUN_COLUMNS } from "../sql/plan-rows.js";
import { columnsOf } from "./rows.js";
import { NEED_NOT_WAIT, NOW } from "./statements.js";

const PLANS = ":schema.plans";
const RUNS = ":schema.plan_runs";
const STEPS = ":schema.plan_steps";
const planColumns = columnsOf(PLAN_COLUMNS, "p").join(", ");
const runColumns = `${columnsOf(RUN_COLUMNS, "r").join(", ")}, octet_length(r.patch)`;
const headColumns = `${columnsOf(HEAD_COLUMNS, "r").join(", ")}, (r.outcome_json IS NOT NULL)::int4, octet_length(r.patch)`;
const LAST_USED_FIRST = "ORDER BY p.used_at DESC, p.plan_id DESC";
const NEWEST_FIRST = "ORDER BY r.created_at DESC, r.job_id DESC";
/** Normally there is one: what one statement forgets is bounded whatever was written past the ledger. */
const FORGOTTEN_PLANS = 10;

/** $1 plan_id, $2 name, $3 workspace, $4 file. Answers the plan. A new one makes others too many. */
const USE = `
  WITH used AS (
    INSERT INTO ${PLANS} AS p (plan_id, name, workspace, file, created_at, used_at)
    VALUES ($1::text, $2::text, $3::text, $4::text, ${NOW}, ${NOW})
    ON CONFLICT (name, workspace) DO UPDATE SET file = excluded.file, used_at = excluded.used_at
    RETURNING ${planColumns}, p.plan_id AS id
  ), forgotten AS (
    DELETE FROM ${PLANS} WHERE plan_id = any(array(
      SELECT p.plan_id FROM ${PLANS} p WHERE p.plan_id <> $1::text
      ${LAST_USED_FIRST} LIMIT ${String(FORGOTTEN_PLANS)} OFFSET ${String(KEPT_PLANS - 1)}))
    AND EXISTS (SELECT FROM used WHERE id = $1::text)
  )
  SELECT * FROM used`;

/** $1 an id or a name, $2 how many. */
const FIND = `SELECT ${planColumns} FROM ${PLANS} p WHERE p.plan_id = $1::text OR p.name = $1::text
  ${LAST_USED_FIRST} LIMIT $2::int4`;
/** $1 how many. */
const LIST = `SELECT ${planColumns} FROM ${PLANS} p ${LAST_USED_FIRST} LIMIT $1::int4`;

/** $1 job_id, $2 plan_id, $3 phase, $4 definition_json. Answers how many plans there are of that id, and how many runs began. */
const BEGIN = `
  WITH plan AS (
    SELECT plan_id FROM ${PLANS} WHERE plan_id = $2::text FOR NO KEY UPDATE
  ), begun AS (
    INSERT INTO ${RUNS} (job_id, plan_id, phase, created_at, definition_json)
    SELECT $1::text, plan_id, $3::text, ${NOW}, $4::text FROM plan
    ON CONFLICT (job_id) DO NOTHING RETURNING plan_id
  ), forgotten AS (
    DELETE FROM ${RUNS} old USING begun WHERE old.plan_id = begun.plan_id
      AND old.job_id NOT IN (SELECT r.job_id FROM ${RUNS} r WHERE r.plan_id = $2::text
        ${NEWEST_FIRST} LIMIT ${String(KEPT_RUNS - 1)})
      AND old.job_id NOT IN (SELECT r.job_id FROM ${RUNS} r WHERE r.plan_id = $2::text
        AND r.patch IS NOT NULL ${NEWEST_FIRST} LIMIT 1)
      AND old.job_id NOT IN (SELECT r.job_id FROM ${RUNS} r WHERE r.plan_id = $2::text
        AND r.phase = 'apply' AND r.outcome_json IS NOT NULL ${NEWEST_FIRST} LIMIT 1)
  )
  SELECT (SELECT count(*) FROM plan), (SELECT count(*) FROM begun)`;

/** $1 job_id */
const DROP = `DELETE FROM ${RUNS} WHERE job_id = $1::text AND outcome_json IS NULL`;

/** $1 job_id, $2 step, $3 record_json, $4 log. A step that is lost with the server is one that was not seen. */
const WRITE_STEP = `
  WITH run AS (SELECT job_id FROM ${RUNS} WHERE job_id = $1::text FOR KEY SHARE)
  INSERT INTO ${STEPS} (job_id, step, record_json, log)
  SELECT job_id, $2::int4, $3::text, $4::text FROM run
  ON CONFLICT (job_id, step) DO UPDATE SET record_json = excluded.record_json, log = excluded.log
  RETURNING ${NEED_NOT_WAIT}`;

/** $1 job_id, $2 outcome_json, $3 the patch; null: what there is stays. */
const FINISH = `UPDATE ${RUNS} SET outcome_json = $2::text, patch = coalesce($3::bytea, patch)
  WHERE job_id = $1::text`;

/** $1 job_id, $2 whether steps are wanted. Answers the run, and a JSON array of its steps: step, record and log each; null: none. */
const RUN = `SELECT ${runColumns},
    (SELECT json_agg(json_build_array(s.step::text, s.record_json, s.log) ORDER BY s.step)::text
      FROM ${STEPS} s WHERE $2::bool AND s.job_id = r.job_id)
  FROM ${RUNS} r WHERE r.job_id = $1::text`;
/** $1 plan_id */
const RUNS_OF_PLAN = `SELECT ${headColumns} FROM ${RUNS} r WHERE r.plan_id = $1::text ${NEWEST_FIRST}`;
/** $1 job_id. In hexadecimal, whatever the server's bytea_output. */
const PATCH = `SELECT encode(patch, 'hex') FROM ${RUNS} WHERE job_id = $1::text`;

export const PLAN_SQL = {
  usePlan: USE,
  findPlans: FIND,
  listPlans: LIST,
  beginRun: BEGIN,
  dropRun: DROP,
  writeStep: WRITE_STEP,
  finishRun: FINISH,
  planRun: RUN,
  planRuns: RUNS_OF_PLAN,
  planPatch: PATCH,
} as const;
