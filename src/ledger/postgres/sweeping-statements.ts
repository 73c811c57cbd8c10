/**
 * The statements of the maintenance, the list and the counts; statements.ts has the rules. A sweep
 * passes over what another transaction holds (SKIP LOCKED): it is being moved already, or comes next time.
 */
import { asMs, jobCells, jobColumns, workerCells, workerColumns } from "./rows.js";
import { COUNTS, from, JOBS, ms, NOW, to, told, withAttemptError } from "./statements.js";

/** Every group of queued jobs (one task, one priority), found one by one at a step of the index each. */
const GROUPS = `
  groups (task, priority) AS (
    (SELECT task, priority FROM ${JOBS} WHERE ${from("claim")} ORDER BY task, priority DESC LIMIT 1)
    UNION ALL
    SELECT next.task, next.priority FROM groups g CROSS JOIN LATERAL (
      (SELECT task, priority FROM ${JOBS} WHERE ${from("claim")} AND task = g.task
        AND priority < g.priority ORDER BY priority DESC LIMIT 1)
      UNION ALL
      (SELECT task, priority FROM ${JOBS} WHERE ${from("claim")} AND task > g.task
        ORDER BY task, priority DESC LIMIT 1)
      ORDER BY task LIMIT 1
    ) AS next
  )`;

/** Up to $1 jobs of the groups that have been due for longer than $2 ms, the longest-waiting first. */
const overdue = (groups: string): string => `
  overdue AS (
    SELECT job.job_id FROM ${groups} g CROSS JOIN LATERAL (
      SELECT job_id, run_at FROM ${JOBS} WHERE ${from("expire")} AND task = g.task
        AND priority = g.priority AND run_at < ${NOW} - ${ms("$2")}
      ORDER BY run_at, job_id LIMIT $1::int4 FOR UPDATE SKIP LOCKED
    ) AS job ORDER BY job.run_at, job.job_id LIMIT $1::int4
  )`;

const endedWaiting = (event: "expire" | "reject", message: string): string => `
  changed AS (
    UPDATE ${JOBS} j SET status = ${to(event)}, finished_at = ${NOW}, error_message = ${message}
    WHERE j.job_id = any(array(SELECT job_id FROM overdue)) RETURNING j.job_id
  ), counted AS (
    UPDATE ${COUNTS} SET queued = queued - n, terminal = terminal + n
    FROM (SELECT count(*) AS n FROM changed) AS c WHERE only_row = 1 AND n > 0
  ), ${told("changed", "$3", "$4")}
  SELECT changed.job_id, (SELECT count(*) FROM told) FROM changed`;

/** $1 chunk, $2 wait limit (ms), $3 channel, $4 prefix, $5 the message. Answers the ids. */
const EXPIRE = `WITH RECURSIVE ${GROUPS}, ${overdue("groups")}, ${endedWaiting("expire", "$5::text")}`;

/**
 * $1 chunk, $2 grace (ms), $3 channel, $4 prefix, $5 the message's beginning, $6 age (ms) beyond which a
 * worker does not count, $7 the worker that asks. Answers the ids.
 */
const REJECT = `
  WITH RECURSIVE ${GROUPS}, living AS (
    SELECT worker_id, tasks_json FROM :schema.async_workers WHERE last_heartbeat >= ${NOW} - ${ms("$6")}
  ), runnable AS (
    SELECT DISTINCT json_array_elements_text(tasks_json::json) AS task FROM living
  ), orphans AS (
    SELECT task, priority FROM groups WHERE task NOT IN (SELECT task FROM runnable)
      AND EXISTS (SELECT FROM living WHERE worker_id = $7::text)
  ), ${overdue("orphans")}, ${endedWaiting("reject", "$5::text || j.task")}`;

/**
 * The order of ids, without an index that has it: among all that ever ran, those that run would be looked
 * for one by one.
 */
const UNINDEXED_ID = "j.job_id || ''";

/** The lost: by their own silence, or known to be gone. $2 age (ms), $3 worker_id text[]. */
const LOST = `(w.last_heartbeat < ${NOW} - ${ms("$2")} OR w.worker_id = any($3::text[]))`;

/**
 * $1 chunk, $2 age (ms) of a worker's beat at which it is lost, $3 the gone text[], $4 age (ms) of a
 * job's own beat at which it is stuck, $5 channel, $6 prefix, $7 the message. Answers id, last owner
 * and status.
 */
const RESCUE = `
  WITH stuck AS (
    SELECT j.job_id FROM ${JOBS} j LEFT JOIN :schema.async_workers w ON w.worker_id = j.worker_id
    WHERE j.${from("rescue")} AND (
      j.last_heartbeat < ${NOW} - ${ms("$4")} OR j.worker_id = any($3::text[])
      OR coalesce(w.last_heartbeat, j.last_heartbeat) < ${NOW} - ${ms("$2")})
    ORDER BY ${UNINDEXED_ID} LIMIT $1::int4 FOR UPDATE OF j SKIP LOCKED
  ), changed AS (
    UPDATE ${JOBS} j SET
      status = CASE WHEN j.cancel_requested_at IS NOT NULL THEN ${to("bury")}
        WHEN j.attempt < j.max_attempts THEN ${to("rescue")} ELSE ${to("strand")} END,
      finished_at = CASE WHEN j.cancel_requested_at IS NULL AND j.attempt < j.max_attempts
        THEN NULL ELSE ${NOW} END,
      run_at = CASE WHEN j.cancel_requested_at IS NULL AND j.attempt < j.max_attempts
        THEN ${NOW} ELSE j.run_at END,
      error_message = CASE WHEN j.cancel_requested_at IS NULL THEN $7::text END,
      attempt_errors = CASE WHEN j.cancel_requested_at IS NULL AND j.attempt < j.max_attempts
        THEN ${withAttemptError("j", "$7::text")} ELSE j.attempt_errors END
    WHERE j.job_id = any(array(SELECT job_id FROM stuck))
    RETURNING j.job_id, j.worker_id, j.status
  ), sums AS (
    SELECT count(*) AS n, count(*) FILTER (WHERE status = ${to("rescue")}) AS back FROM changed
  ), counted AS (
    UPDATE ${COUNTS} SET running = running - n, queued = queued + back, terminal = terminal + n - back
    FROM sums WHERE only_row = 1 AND n > 0
  ), forgotten AS (
    DELETE FROM :schema.async_workers w USING sums WHERE ${LOST} AND NOT EXISTS (
      SELECT FROM ${JOBS} j WHERE j.${from("rescue")} AND j.worker_id = w.worker_id
        AND j.job_id NOT IN (SELECT job_id FROM changed))
  ), ${told("changed", "$5", "$6")}
  SELECT changed.*, (SELECT count(*) FROM told) FROM changed`;

/**
 * $1 chunk, $2 age (ms), $3 how many to keep, $4 how many bytes of payloads and results at once (one job
 * goes in any case), $5 channel, $6 prefix. Answers the ids, each with whether there is more to forget.
 * Which jobs are too many is told by the snapshot, and of those that ended in one moment by their order
 * in the index: sweeps at once name the same ones, and none has to lock the counts before its rows are gone.
 */
const EVICT = `
  WITH book AS MATERIALIZED (
    SELECT terminal - $3::bigint AS surplus FROM ${COUNTS} WHERE only_row = 1
  ), oldest AS MATERIALIZED (
    SELECT job_id, finished_at,
      pg_column_size(payload_json) + coalesce(pg_column_size(result_json), 0) AS bytes
    FROM ${JOBS} WHERE finished_at < CASE WHEN (SELECT surplus FROM book) > 0
      THEN 'infinity' ELSE ${NOW} - ${ms("$2")} END
    ORDER BY finished_at LIMIT $1::int4
  ), due AS MATERIALIZED (
    SELECT job_id, place, bytes FROM (
      SELECT job_id, finished_at, row_number() OVER past AS place, sum(bytes) OVER past AS bytes
      FROM oldest WINDOW past AS (ROWS UNBOUNDED PRECEDING)) AS o
    WHERE finished_at < ${NOW} - ${ms("$2")} OR place <= (SELECT surplus FROM book)
  ), free AS (
    SELECT job_id FROM ${JOBS} WHERE job_id = any(array(
      SELECT job_id FROM due WHERE place = 1 OR bytes <= $4::bigint)) FOR UPDATE SKIP LOCKED
  ), changed AS (
    DELETE FROM ${JOBS} WHERE job_id = any(array(SELECT job_id FROM free)) RETURNING job_id
  ), counted AS (
    UPDATE ${COUNTS} SET terminal = terminal - n
    FROM (SELECT count(*) AS n FROM changed) AS c WHERE only_row = 1 AND n > 0
  ), ${told("changed", "$5", "$6")}
  SELECT changed.job_id, (SELECT count(*) FROM due) > (SELECT count(*) FROM changed) AS more,
    (SELECT count(*) FROM told) FROM changed`;

/** Of the counts, and how long (ms) the longest-waiting has been due. */
const COUNTS_AND_AGE = (runAt: string): string =>
  `queued, running, terminal, round(date_part('epoch', ${NOW} - ${runAt}) * 1000)`;

/** Answers queued, running, terminal, and how long (ms) the longest-waiting has been due: negative where it is not yet, null where none waits. */
const COUNT = `
  WITH RECURSIVE ${GROUPS}, first AS (
    SELECT min(job.run_at) AS run_at FROM groups g CROSS JOIN LATERAL (
      SELECT run_at FROM ${JOBS} WHERE ${from("claim")} AND task = g.task AND priority = g.priority
      ORDER BY run_at, job_id LIMIT 1) AS job
  )
  SELECT ${COUNTS_AND_AGE("first.run_at")} FROM ${COUNTS}, first WHERE only_row = 1`;

/**
 * $1 chunk, $2 age (ms) of a worker's beat at which it is lost, $3 age (ms) of a job's own beat at which
 * it is stuck. Answers what COUNT does; now (ms), version, number of the last migration; and in JSON,
 * null for none: the oldest job's cells, and arrays of the workers' cells, the stuck jobs' cells, and of
 * tasks with the number of their queued jobs.
 */
const INSPECT = `
  WITH RECURSIVE ${GROUPS}, oldest AS (
    SELECT job.job_id, job.run_at FROM groups g CROSS JOIN LATERAL (
      SELECT job_id, run_at FROM ${JOBS} WHERE ${from("claim")} AND task = g.task
        AND priority = g.priority ORDER BY run_at, job_id LIMIT 1) AS job
    ORDER BY job.run_at, job.job_id LIMIT 1
  ), stuck AS (
    SELECT ARRAY[${jobCells("j")}] AS cells
    FROM ${JOBS} j LEFT JOIN :schema.async_workers w ON w.worker_id = j.worker_id
    WHERE j.${from("rescue")} AND (j.last_heartbeat < ${NOW} - ${ms("$3")}
      OR coalesce(w.last_heartbeat, j.last_heartbeat) < ${NOW} - ${ms("$2")})
    ORDER BY ${UNINDEXED_ID} LIMIT $1::int4
  ), waiting AS (
    SELECT t.task, q.queued FROM (SELECT DISTINCT task FROM groups) AS t CROSS JOIN LATERAL (
      SELECT count(*) AS queued FROM ${JOBS} WHERE ${from("claim")} AND task = t.task) AS q
    ORDER BY q.queued DESC, t.task LIMIT $1::int4
  )
  SELECT ${COUNTS_AND_AGE("(SELECT run_at FROM oldest)")},
    ${asMs(NOW)}, current_setting('server_version'),
    (SELECT max(number) FROM :schema.jobtable_migrations),
    (SELECT to_json(ARRAY[${jobCells("j")}])::text FROM ${JOBS} j
      WHERE j.job_id = (SELECT job_id FROM oldest WHERE run_at <= now())),
    (SELECT json_agg(ARRAY[${workerCells("w")}] ORDER BY w.started_at, w.worker_id)::text
      FROM :schema.async_workers w),
    (SELECT json_agg(cells)::text FROM stuck),
    (SELECT json_agg(json_build_array(task, queued))::text FROM waiting)
  FROM ${COUNTS} WHERE only_row = 1`;

/** Newest first. $1 below this id, $2 how many. */
const LIST = `SELECT ${jobColumns("j")} FROM ${JOBS} j WHERE j.job_id < $1::text
  ORDER BY j.job_id DESC LIMIT $2::int4`;

/**
 * $1 below this id, $2 how many, $3 statuses text[], $4 task or null, $5 how many rows to look at. Always
 * answers a row: the last id that was looked at where there may be more below it, then a job or nulls.
 * @param among which jobs to look at.
 */
const listFiltered = (among: string): string => `
  SELECT (SELECT job_id FROM ${JOBS} WHERE ${among} job_id < $1::text ORDER BY job_id DESC
      OFFSET $5::int4 - 1 LIMIT 1), page.*
  FROM (SELECT) AS always LEFT JOIN (
    SELECT ${jobColumns("j")} FROM (
      SELECT * FROM ${JOBS} WHERE ${among} job_id < $1::text ORDER BY job_id DESC LIMIT $5::int4) AS j
    WHERE j.status = any($3::text[]) AND ($4::text IS NULL OR j.task = $4::text)
    ORDER BY j.job_id DESC LIMIT $2::int4
  ) AS page ON true`;
const LIST_FILTERED = listFiltered("");
/** $6 the plan. */
const LIST_PLAN = listFiltered("plan_id = $6::text AND");

/**
 * Of the jobs that wait or run, found by their own indexes however many newer ones have ended. $1 below
 * this id, $2 how many, $3 statuses text[], $4 task or null.
 */
const LIST_LIVE = `
  WITH RECURSIVE ${GROUPS}, live AS MATERIALIZED (
    SELECT job.job_id FROM groups g CROSS JOIN LATERAL (
      SELECT job_id FROM ${JOBS} WHERE ${from("claim")} AND task = g.task AND priority = g.priority
    ) AS job
    WHERE ${to("release")} = any($3::text[]) AND ($4::text IS NULL OR g.task = $4::text)
    UNION ALL
    SELECT job_id FROM ${JOBS}
    WHERE ${from("succeed")} AND ${to("claim")} = any($3::text[])
      AND ($4::text IS NULL OR task = $4::text)
  )
  SELECT ${jobColumns("j")} FROM ${JOBS} j WHERE j.job_id = any(array(
    SELECT job_id FROM live WHERE job_id < $1::text ORDER BY job_id DESC LIMIT $2::int4))
  ORDER BY j.job_id DESC`;

const WORKERS = `SELECT ${workerColumns("w")} FROM :schema.async_workers w
  ORDER BY w.started_at, w.worker_id`;
/** $1 worker_id */
const LEAVE = "DELETE FROM :schema.async_workers WHERE worker_id = $1::text";

export const SWEEPING_SQL = {
  expire: EXPIRE,
  reject: REJECT,
  rescue: RESCUE,
  evict: EVICT,
  counts: COUNT,
  inspect: INSPECT,
  list: LIST,
  listFiltered: LIST_FILTERED,
  listPlan: LIST_PLAN,
  listLive: LIST_LIVE,
  workers: WORKERS,
  leave: LEAVE,
} as const;
