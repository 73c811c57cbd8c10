/**
 * Every statement of the ledger, by name. Values are bound, never written in; what is written in are
 * the statuses of the TRANSITIONS table (a partial index is only used when its status stands in the
 * statement as it is) and the names of columns.
 *
 * `INDEXED BY` is an assertion: where the index could not serve, preparing fails, so that no
 * statement can ever fall back to reading the table. `?` are bound in the order in which they stand;
 * times are ISO-8601 text.
 */
import type { Database, Statement } from "better-sqlite3";
import { MAX_ATTEMPT_ERRORS } from "../../job/limits.js";
import { ALL_STATUSES, TRANSITIONS, type JobEvent } from "../../job/state.js";
import { CLAIMED_COLUMNS, JOB_COLUMNS, WORKER_COLUMNS } from "../sql/rows.js";
import { PLAN_SQL } from "./plan-statements.js";
import type { Row } from "./protocol.js";
import { SUBMITTED_COLUMNS } from "./rows.js";

const JOB = JOB_COLUMNS.join(", ");
const from = (event: JobEvent): string => `status = '${TRANSITIONS[event].from}'`;
const to = (event: JobEvent): string => `status = '${TRANSITIONS[event].to}'`;
const places = (count: number): string => Array<string>(count).fill("?").join(", ");

const QUEUED = `async_jobs INDEXED BY ix_async_jobs_status WHERE ${from("claim")}`;
const RUNNING = `async_jobs INDEXED BY ix_async_jobs_worker_id WHERE ${from("succeed")}`;
const OF_PLAN = "async_jobs INDEXED BY ix_async_jobs_plan_id WHERE plan_id = ?";
/** The one job, while the claim holds. Binds: job_id, worker_id, attempt. */
const OWNED = `job_id = ? AND worker_id = ? AND attempt = ? AND ${from("succeed")}`;
const STATUS_NUMBER = `CASE status ${ALL_STATUSES.map(
  (status, number) => `WHEN '${status}' THEN ${String(number)}`,
).join(" ")} END`;
/** A number for what others can see of a job; `lookOf` in rows.ts makes the same of a record. */
const LOOK = `(attempt * 8 + ${STATUS_NUMBER}) * 2 + (cancel_requested_at IS NOT NULL)`;
/** Appends what went wrong, and drops the oldest beyond the bound. Binds the time in ms and the message. */
const ATTEMPT_ERROR = `attempt_errors = json_insert(
  CASE WHEN json_array_length(attempt_errors) >= ${String(MAX_ATTEMPT_ERRORS)}
    THEN json_remove(attempt_errors, '$[0]') ELSE coalesce(attempt_errors, '[]') END,
  '$[#]', json_object('attempt', attempt, 'worker_id', worker_id, 'at_ms', ?, 'error_message', ?))`;
/** How many statuses a list can name; the rest is padded with null. */
export const STATUS_PLACES = 6;

export const SQL = {
  counts: "SELECT queued, running, terminal, ended FROM async_counts WHERE only_row = 1",
  setCounts: `UPDATE async_counts SET queued = ?, running = ?, terminal = ?, ended = ?
    WHERE only_row = 1`,
  countQueued: `SELECT count(*) FROM ${QUEUED}`,
  countTask: `SELECT count(*) FROM ${QUEUED} AND task = ?`,
  countRunning: `SELECT count(*) FROM ${RUNNING}`,

  /** Binds SUBMITTED_COLUMNS. */
  submit: `INSERT INTO async_jobs (${SUBMITTED_COLUMNS.join(", ")}, status, attempt)
    VALUES (${places(SUBMITTED_COLUMNS.length)}, '${TRANSITIONS.claim.from}', 0)`,

  /** The next task (after ?) of which jobs are queued, and its next priority (below ?). */
  nextTask: `SELECT task FROM ${QUEUED} AND task > ? ORDER BY task LIMIT 1`,
  nextPriority: `SELECT priority FROM ${QUEUED} AND task = ? AND priority < ?
    ORDER BY priority DESC LIMIT 1`,
  /** Jobs of a task and a priority that are due at ?, in the order of claims; up to ?. */
  due: `SELECT run_at, job_id, rowid FROM ${QUEUED} AND task = ? AND priority = ? AND run_at <= ?
    ORDER BY run_at, job_id LIMIT ?`,
  /** Those due before ?. */
  overdue: `SELECT run_at, job_id, rowid FROM ${QUEUED} AND task = ? AND priority = ? AND run_at < ?
    ORDER BY run_at, job_id LIMIT ?`,
  firstOfGroup: `SELECT run_at, job_id FROM ${QUEUED} AND task = ? AND priority = ?
    ORDER BY run_at, job_id LIMIT 1`,

  /**
   * Binds worker_id, now, now; then the task, the priority, now and the number to take. Cells cost more
   * than the update, on both sides of the thread: a job is one JSON text, and its payload as it is.
   */
  claim: `UPDATE async_jobs SET ${to("claim")}, worker_id = ?, attempt = attempt + 1,
      started_at = ?, last_heartbeat = ?, error_message = NULL
    WHERE rowid IN (SELECT rowid FROM ${QUEUED} AND task = ? AND priority = ? AND run_at <= ?
      ORDER BY run_at, job_id LIMIT ?) AND attempt < max_attempts
    RETURNING json_array(${CLAIMED_COLUMNS.join(", ")}), payload_json`,

  succeed: `UPDATE async_jobs SET ${to("succeed")}, finished_at = ?, result_json = ?
    WHERE ${OWNED}`,
  fail: `UPDATE async_jobs SET ${to("fail")}, finished_at = ?, error_message = ? WHERE ${OWNED}`,
  timeOut: `UPDATE async_jobs SET ${to("time_out")}, finished_at = ?, error_message = ?
    WHERE ${OWNED}`,
  stop: `UPDATE async_jobs SET ${to("stop")}, finished_at = ? WHERE ${OWNED}`,
  /** Binds the due time, the message, and what ATTEMPT_ERROR does. */
  retry: `UPDATE async_jobs SET ${to("retry")}, run_at = ?, error_message = ?, ${ATTEMPT_ERROR}
    WHERE ${OWNED} AND attempt < max_attempts AND cancel_requested_at IS NULL`,
  release: `UPDATE async_jobs SET ${to("release")}, attempt = attempt - 1
    WHERE ${OWNED} AND started_at = ? AND cancel_requested_at IS NULL`,
  stopReleased: `UPDATE async_jobs SET ${to("stop")}, finished_at = ?
    WHERE ${OWNED} AND started_at = ? AND cancel_requested_at IS NOT NULL`,
  stopRequested: `UPDATE async_jobs SET ${to("stop")}, finished_at = ?
    WHERE ${OWNED} AND cancel_requested_at IS NOT NULL`,

  beatWorker: `INSERT INTO async_workers (${WORKER_COLUMNS.join(", ")})
    VALUES (${places(WORKER_COLUMNS.length)})
    ON CONFLICT (worker_id) DO UPDATE SET last_heartbeat = excluded.last_heartbeat,
      ${WORKER_COLUMNS.slice(1, -2)
        .map((column) => `${column} = excluded.${column}`)
        .join(", ")}`,
  beatJob: `UPDATE async_jobs SET last_heartbeat = ?, progress_json = coalesce(?, progress_json)
    WHERE ${OWNED} RETURNING cancel_requested_at IS NOT NULL`,
  leave: "DELETE FROM async_workers WHERE worker_id = ?",
  workers: `SELECT ${WORKER_COLUMNS.join(", ")} FROM async_workers
    ORDER BY started_at, worker_id`,
  living: "SELECT worker_id, tasks_json FROM async_workers WHERE last_heartbeat >= ?",
  /** Forgets a worker that has no running job. Binds its id twice. */
  forgetWorker: `DELETE FROM async_workers WHERE worker_id = ?
    AND NOT EXISTS (SELECT 1 FROM ${RUNNING} AND worker_id = ?)`,

  cancel: `UPDATE async_jobs SET ${to("cancel")}, finished_at = ?, error_message = NULL
    WHERE job_id = ? AND ${from("cancel")} RETURNING ${JOB}`,
  requestCancel: `UPDATE async_jobs SET cancel_requested_at = coalesce(cancel_requested_at, ?)
    WHERE job_id = ? AND ${from("stop")} RETURNING ${JOB}`,

  job: `SELECT ${JOB} FROM async_jobs WHERE job_id = ?`,
  /** The job that has a key, and its fingerprint. */
  keyed: `SELECT ${JOB}, payload_fingerprint
    FROM async_jobs INDEXED BY ux_async_jobs_idempotency_key WHERE idempotency_key = ?`,
  result: `SELECT ${JOB}, result_json FROM async_jobs WHERE job_id = ?`,
  payload: "SELECT payload_json FROM async_jobs WHERE job_id = ?",
  look: `SELECT status, attempt, cancel_requested_at IS NOT NULL FROM async_jobs WHERE job_id = ?`,
  /** For each id of a JSON array, in its order: a LOOK; -1: no job. One cell a job, since cells cost more than the search. */
  looks: `SELECT CASE WHEN status IS NULL THEN -1 ELSE ${LOOK} END
    FROM json_each(?) LEFT JOIN async_jobs ON job_id = value`,
  /** Those that ended after ?, the last first; up to ?. */
  endsAfter: `SELECT rowid, finished_at FROM async_jobs INDEXED BY ix_async_jobs_finished_at
    WHERE finished_at > ? ORDER BY finished_at DESC, rowid DESC LIMIT ?`,
  lookAtRow: `SELECT job_id, ${LOOK} FROM async_jobs WHERE rowid = ?`,
  /** All that run, up to ?. */
  runningLooks: `SELECT job_id, ${LOOK} FROM ${RUNNING} LIMIT ?`,

  /** The id that stands ? places below ?. */
  idBelow: `SELECT job_id FROM async_jobs INDEXED BY sqlite_autoindex_async_jobs_1
    WHERE job_id < ? ORDER BY job_id DESC LIMIT 1 OFFSET ?`,
  list: `SELECT ${JOB} FROM async_jobs INDEXED BY sqlite_autoindex_async_jobs_1
    WHERE job_id < ? AND job_id >= ? ORDER BY job_id DESC LIMIT ?`,
  /** Binds as list, with the task (null: any), twice, and STATUS_PLACES statuses before the limit. */
  listFiltered: `SELECT ${JOB} FROM async_jobs INDEXED BY sqlite_autoindex_async_jobs_1
    WHERE job_id < ? AND job_id >= ? AND (? IS NULL OR task = ?)
      AND status IN (${places(STATUS_PLACES)})
    ORDER BY job_id DESC LIMIT ?`,
  /** As idBelow, among the jobs of a plan. Binds the plan first. */
  planIdBelow: `SELECT job_id FROM ${OF_PLAN} AND job_id < ?
    ORDER BY job_id DESC LIMIT 1 OFFSET ?`,
  /** As listFiltered, among the jobs of a plan. Binds the plan first. */
  listPlan: `SELECT ${JOB} FROM ${OF_PLAN} AND job_id < ? AND job_id >= ?
      AND (? IS NULL OR task = ?) AND status IN (${places(STATUS_PLACES)})
    ORDER BY job_id DESC LIMIT ?`,
  listQueued: `SELECT ${JOB} FROM async_jobs WHERE rowid IN (
      SELECT rowid FROM ${QUEUED} AND job_id < ? ORDER BY job_id DESC LIMIT ?)`,
  listQueuedTask: `SELECT ${JOB} FROM async_jobs WHERE rowid IN (
      SELECT rowid FROM ${QUEUED} AND task = ? AND job_id < ? ORDER BY job_id DESC LIMIT ?)`,
  /** Binds the cursor, the task (null: any) twice, and the limit. */
  listRunning: `SELECT ${JOB} FROM ${RUNNING} AND job_id < ? AND (? IS NULL OR task = ?)
    ORDER BY job_id DESC LIMIT ?`,

  expire: `UPDATE async_jobs SET ${to("expire")}, finished_at = ?, error_message = ?
    WHERE rowid = ? AND ${from("expire")}`,
  reject: `UPDATE async_jobs SET ${to("reject")}, finished_at = ?, error_message = ?
    WHERE rowid = ? AND ${from("reject")}`,

  /**
   * Running jobs that are stuck. Binds: a beat older than ? is too old in any case; the lost workers
   * (JSON array); the workers that have a row (JSON array); a beat older than ? is too old for others.
   */
  stuck: `SELECT rowid, job_id, worker_id, attempt < max_attempts, cancel_requested_at IS NOT NULL
    FROM ${RUNNING} AND (last_heartbeat < ? OR worker_id IN (SELECT value FROM json_each(?))
      OR (worker_id NOT IN (SELECT value FROM json_each(?)) AND last_heartbeat < ?)) LIMIT ?`,
  strand: `UPDATE async_jobs SET ${to("strand")}, finished_at = ?, error_message = ?
    WHERE rowid = ? AND ${from("strand")}`,
  rescue: `UPDATE async_jobs SET ${to("rescue")}, run_at = ?, error_message = ?, ${ATTEMPT_ERROR}
    WHERE rowid = ? AND ${from("rescue")}`,
  bury: `UPDATE async_jobs SET ${to("bury")}, finished_at = ? WHERE rowid = ? AND ${from("bury")}`,

  /**
   * How large those are that `evict` forgets, in its order. Unlike length(), octet_length() reads
   * none of what it measures.
   */
  evictBytes: `SELECT octet_length(payload_json) + coalesce(octet_length(result_json), 0)
    FROM async_jobs INDEXED BY ix_async_jobs_finished_at
    WHERE finished_at IS NOT NULL AND finished_at < ? ORDER BY finished_at, rowid LIMIT ?`,
  /** Forgets up to ? jobs that ended before ?, the oldest first. */
  evict: `DELETE FROM async_jobs WHERE rowid IN (
      SELECT rowid FROM async_jobs INDEXED BY ix_async_jobs_finished_at
      WHERE finished_at IS NOT NULL AND finished_at < ? ORDER BY finished_at, rowid LIMIT ?)
    RETURNING job_id`,

  ...PLAN_SQL,

  software: "SELECT sqlite_version(), (SELECT max(number) FROM jobtable_migrations)",
  dataVersion: "PRAGMA data_version",
  begin: "BEGIN",
  beginWrite: "BEGIN IMMEDIATE",
  commit: "COMMIT",
} as const;

export type StatementName = keyof typeof SQL;
export type Statements = Readonly<Record<StatementName, Statement<unknown[], Row>>>;

/** Prepares them all; those that answer rows answer arrays. */
export function prepareStatements(db: Database): Statements {
  const prepared = Object.entries(SQL).map(([name, sql]) => {
    const statement = db.prepare<unknown[], Row>(sql);
    return [name, statement.reader ? statement.raw() : statement];
  });
  return Object.fromEntries(prepared) as Statements;
}
