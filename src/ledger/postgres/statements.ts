/**
 * The statements that claim, settle and look; submitting-statements.ts and sweeping-statements.ts have
 * the others. Values are bound, never written in. What is written in are statuses of the TRANSITIONS
 * table (a partial index is only used where its status stands in the statement as it is) and names.
 *
 * Rules that hold for all of them:
 * - Now is the server's now(), the start of the statement, cut to whole milliseconds.
 * - One statement is one transaction: jobs, counts and NOTIFY become visible together.
 * - Locks are taken in one order: jobs by id, then the row of counts. A submit takes the counts first,
 *   and after it only rows that nobody else can see yet. So no two of them wait for each other, unless
 *   a list does not fit the server's work_mem and is hashed in parts: what loses then is tried again.
 * - A plan is made once in a session, from index scans alone (connections.ts), and must be as good for
 *   many rows as for none. Jobs are found through `= any(array(SELECT ...))`: the planner can't see how
 *   many these will be, expects ten, and goes through the index of ids. The queued are read by groups
 *   (one task, one priority), each of them with an equality on the index.
 * - `:schema` stands for the schema's name.
 */
import { MAX_ATTEMPT_ERRORS } from "../../job/limits.js";
import { TRANSITIONS, type JobEvent } from "../../job/state.js";
import { asMs, claimedColumns, jobColumns } from "./rows.js";

export interface Statement {
  readonly name: string;
  readonly text: string;
}

export const JOBS = ":schema.async_jobs";
export const COUNTS = ":schema.async_counts";
export const NOW = "date_trunc('milliseconds', now())";
/** Ids in one NOTIFY: 27 bytes each, of the 8,000 that a payload may have. */
export const IDS_PER_MESSAGE = 280;

export const from = (event: JobEvent): string => `status = '${TRANSITIONS[event].from}'`;
/**
 * Where rows are found by their ids, nothing else may be taken for an index: a plan that was made while
 * the table was empty, or nobody ran anything, would go through all that there is or runs by now.
 */
const fromUnindexed = (event: JobEvent): string => `status || '' = '${TRANSITIONS[event].from}'`;
/**
 * The jobs of a list of ids, and what the list has for each: what is asked of a job besides stands in the
 * join (by an empty text of the list). Else the planner expects to find one job where it expects ten in
 * the list, and compares each with all of the list, as well as it would look into a hash of it.
 * @param ids a parameter. @param worker of the jobs.
 */
const listed = (ids: string, list: string, worker: string): string => `
      j.job_id = any(array(SELECT unnest(${ids}::text[]))) AND j.job_id || '' = ${list}.job_id
      AND j.status || left(${list}.job_id, 0) = '${TRANSITIONS.succeed.from}'
      AND j.worker_id || left(${list}.job_id, 0) = ${worker} AND j.attempt = ${list}.attempt`;
export const to = (event: JobEvent): string => `'${TRANSITIONS[event].to}'`;
export const ms = (parameter: string): string => `${parameter}::float8 * interval '1 ms'`;

/** A job's errors with one more, without the oldest beyond the bound. @param j the table's name. */
export const withAttemptError = (j: string, message: string): string => `
  (CASE WHEN jsonb_array_length(${j}.attempt_errors::jsonb) >= ${String(MAX_ATTEMPT_ERRORS)}
    THEN ${j}.attempt_errors::jsonb - 0 ELSE coalesce(${j}.attempt_errors::jsonb, '[]') END
    || jsonb_build_object('attempt', ${j}.attempt, 'worker_id', ${j}.worker_id,
      'at_ms', ${asMs(NOW)}, 'error_message', ${message}))::text`;

/** Tells the ids of a table in messages of bounded length. @param channel @param prefix parameters. */
export const told = (table: string, channel: string, prefix: string): string => `
  told AS (
    SELECT pg_notify(${channel}::text, ${prefix}::text || string_agg(job_id, ','))
    FROM (SELECT job_id, (row_number() OVER () - 1) / ${String(IDS_PER_MESSAGE)} AS part FROM ${table}) t
    GROUP BY part
  )`;

/**
 * A beat that is lost with the server leaves the job as it was before: it need not wait for the disk.
 * It holds for this one transaction, and so behind a proxy that pools them, too. A claim does wait:
 * its worker lives on when the server is lost, and would run a job that another one gets again.
 */
export const NEED_NOT_WAIT = "set_config('synchronous_commit', 'off', true)";

/** The groups of queued jobs of these tasks, found one by one at a step of the index each. */
const groupsOf = (tasks: string): string => `
  groups (task, priority) AS (
    (SELECT t.task, p.priority
      FROM (SELECT DISTINCT unnest(${tasks}) COLLATE "C") AS t (task)
      CROSS JOIN LATERAL (SELECT priority FROM ${JOBS} WHERE ${from("claim")} AND task = t.task
        ORDER BY priority DESC LIMIT 1) AS p)
    UNION ALL
    SELECT g.task, p.priority FROM groups g
      CROSS JOIN LATERAL (SELECT priority FROM ${JOBS} WHERE ${from("claim")} AND task = g.task
        AND priority < g.priority ORDER BY priority DESC LIMIT 1) AS p
  )`;

const DUE_IN_GROUP = `FROM ${JOBS} WHERE ${from("claim")} AND task = g.task AND priority = g.priority
        AND run_at <= now()`;

/**
 * $1 worker_id, $2 tasks text[], $3 the limit, $4 channel, $5 prefix of the messages.
 * Where there are several groups, it first looks what would be taken over all of them, without locks,
 * which says how many each of them gives; then each gives as many, past those that other claims hold.
 * What is taken is locked, and so it is what the UPDATE finds: ids, counts and messages come from there,
 * and rows are written out once. A SELECT that nobody reads would never run: this is why the UPDATE asks
 * whether `told` has rows. Answers the jobs with payloads, in no order. The counts change last, after
 * the UPDATE: their lock is what claims share.
 */
const CLAIM = `
  WITH RECURSIVE ${groupsOf("$2::text[]")}, quotas AS (
    SELECT task, priority, $3::bigint AS quota FROM groups WHERE (SELECT count(*) FROM groups) = 1
    UNION ALL
    SELECT task, priority, count(*) FROM (
      SELECT g.task, g.priority FROM groups g
      CROSS JOIN LATERAL (SELECT run_at, job_id ${DUE_IN_GROUP}
        ORDER BY run_at, job_id LIMIT $3::int4) AS due
      WHERE (SELECT count(*) FROM groups) > 1
      ORDER BY g.priority DESC, due.run_at, due.job_id LIMIT $3::int4
    ) AS first GROUP BY task, priority
  ), taken AS (
    SELECT job.job_id FROM quotas g
    CROSS JOIN LATERAL (SELECT job_id ${DUE_IN_GROUP} AND attempt < max_attempts
      ORDER BY run_at, job_id LIMIT g.quota FOR UPDATE SKIP LOCKED) AS job
  ), all_taken AS (SELECT count(*) AS n, array_agg(job_id) AS ids FROM taken), told AS (
    SELECT pg_notify($4::text, $5::text || array_to_string(ids[at:at + ${String(IDS_PER_MESSAGE - 1)}], ','))
    FROM all_taken, generate_series(1, n, ${String(IDS_PER_MESSAGE)}) AS at
  ), counted AS (
    UPDATE ${COUNTS} SET queued = queued - n, running = running + n
    FROM all_taken WHERE only_row = 1 AND n > 0
  )
  UPDATE ${JOBS} j SET status = ${to("claim")}, worker_id = $1::text, attempt = attempt + 1,
    started_at = ${NOW}, last_heartbeat = ${NOW}, error_message = NULL
  WHERE j.job_id = any((SELECT ids FROM all_taken)::text[]) AND (SELECT count(*) FROM told) >= 0
  RETURNING ${claimedColumns("j")}, j.payload_json`;

const BACK = `s.event IN ('retry', 'release')`;

/**
 * $1 job_id text[] (ascending, each once); $2 attempt int4[], $3 worker_id text[], $4 event text[]: one
 * alone, where it is the same for all; $5 result_json text[], $6 error_message text[], $7 float8[] (a
 * retry's pause in ms; when a release's claim was made, ms since the epoch); $8 how many; $9 channel,
 * $10 messages text[], $11 error_message text[] as it is kept of an attempt that was not the last, where
 * that is another. Answers how many happened, and their statuses by id where not all of them
 * happened and led where their event leads.
 */
const SETTLE = `
  WITH settled AS (
    UPDATE ${JOBS} j SET
      status = CASE
        WHEN ${BACK} THEN
          CASE WHEN j.cancel_requested_at IS NULL THEN ${to("retry")} ELSE ${to("stop")} END
        WHEN s.event = 'succeed' THEN ${to("succeed")}
        WHEN s.event = 'fail' THEN ${to("fail")}
        WHEN s.event = 'time_out' THEN ${to("time_out")}
        ELSE ${to("stop")} END,
      finished_at = CASE WHEN ${BACK} AND j.cancel_requested_at IS NULL THEN NULL ELSE ${NOW} END,
      run_at = CASE WHEN s.event = 'retry' AND j.cancel_requested_at IS NULL
        THEN ${NOW} + ${ms("s.ms")} ELSE j.run_at END,
      attempt = j.attempt
        - CASE WHEN s.event = 'release' AND j.cancel_requested_at IS NULL THEN 1 ELSE 0 END,
      result_json = s.result_json,
      error_message = CASE WHEN s.event = 'retry' AND j.cancel_requested_at IS NOT NULL
        THEN NULL ELSE s.error_message END,
      attempt_errors = CASE WHEN s.event = 'retry' AND j.cancel_requested_at IS NULL
        THEN ${withAttemptError("j", "coalesce(s.kept_message, s.error_message)")}
        ELSE j.attempt_errors END
    FROM (SELECT job_id, coalesce(attempt, ($2::int4[])[1]) AS attempt,
        coalesce(worker_id, ($3::text[])[1]) AS worker_id, coalesce(event, ($4::text[])[1]) AS event,
        result_json, error_message, ms, kept_message
      FROM unnest((SELECT $1::text[]), (SELECT $2::int4[]), (SELECT $3::text[]), (SELECT $4::text[]),
          (SELECT $5::text[]), (SELECT $6::text[]), (SELECT $7::float8[]),
          (SELECT $11::text[]))
        AS u (job_id, attempt, worker_id, event, result_json, error_message, ms, kept_message)) AS s
    WHERE ${listed("$1", "s", "s.worker_id")}
      AND (s.event <> 'release' OR ${asMs("j.started_at")} = s.ms)
      AND (s.event <> 'retry' OR j.attempt < j.max_attempts OR j.cancel_requested_at IS NOT NULL)
    RETURNING j.job_id, j.status, ${BACK} AS asked_back
  ), sums AS (
    SELECT count(*) AS n, count(*) FILTER (WHERE status = ${to("retry")}) AS back,
      count(*) FILTER (WHERE asked_back) AS asked_back FROM settled
  ), counted AS (
    UPDATE ${COUNTS} SET running = running - n, queued = queued + back, terminal = terminal + n - back
    FROM sums WHERE only_row = 1 AND n > 0
  )
  SELECT n, CASE WHEN n <> $8::bigint OR back <> asked_back
      THEN (SELECT json_object_agg(job_id, status) FROM settled) END,
    CASE WHEN n > 0 THEN (SELECT count(pg_notify($9::text, m)) FROM unnest($10::text[]) AS m) END
  FROM sums`;

/**
 * $1 job_id text[] (ascending), $2 channel, $3 prefix. Answers those that it ended or asked, as they
 * are now; ended ones, asked ones and unknown ones are left out.
 */
const CANCEL = `
  WITH moved AS (
    UPDATE ${JOBS} j SET
      status = CASE WHEN j.${from("cancel")} THEN ${to("cancel")} ELSE j.status END,
      finished_at = CASE WHEN j.${from("cancel")} THEN ${NOW} END,
      error_message = NULL,
      cancel_requested_at = CASE WHEN j.${from("cancel")} THEN j.cancel_requested_at ELSE ${NOW} END
    WHERE j.job_id = any(array(SELECT unnest($1::text[])))
      AND (j.${fromUnindexed("cancel")}
        OR (j.${fromUnindexed("stop")} AND j.cancel_requested_at IS NULL))
    RETURNING ${jobColumns("j")}, j.job_id AS id, j.status AS after
  ), counted AS (
    UPDATE ${COUNTS} SET queued = queued - n, terminal = terminal + n
    FROM (SELECT count(*) AS n FROM moved WHERE after = ${to("cancel")}) AS c
    WHERE only_row = 1 AND n > 0
  ), changed AS (SELECT id AS job_id FROM moved), ${told("changed", "$2", "$3")}
  SELECT moved.*, (SELECT count(*) FROM told) FROM moved`;

/**
 * $1 worker_id, $2 host, $3 pid, $4 pid_stamp, $5 state, $6 tasks_json, $7 max_workers, $8 processed,
 * $9 failed, $10 cancelled; $11 job_id text[] (ascending), $12 attempt int4[], $13 progress_json text[].
 * Answers the ids of the jobs that are still the worker's, and whether someone asked to cancel them.
 */
const HEARTBEAT = `
  WITH beaten AS (
    UPDATE ${JOBS} j SET last_heartbeat = ${NOW},
      progress_json = coalesce(b.progress_json, j.progress_json)
    FROM unnest((SELECT $11::text[]), (SELECT $12::int4[]), (SELECT $13::text[]))
      AS b (job_id, attempt, progress_json)
    WHERE ${listed("$11", "b", "$1::text")}
    RETURNING j.job_id, j.cancel_requested_at IS NOT NULL AS asked
  ), seen AS (SELECT count(*) FROM beaten), beat AS (
    INSERT INTO :schema.async_workers AS w (worker_id, host, pid, pid_stamp, state, tasks_json,
      max_workers, processed, failed, cancelled, started_at, last_heartbeat)
    SELECT $1::text, $2::text, $3::int4, $4::text, $5::text, $6::text, $7::int4, $8::int8, $9::int8,
      $10::int8, ${NOW}, ${NOW} FROM seen
    ON CONFLICT (worker_id) DO UPDATE SET host = excluded.host, pid = excluded.pid,
      pid_stamp = excluded.pid_stamp, state = excluded.state, tasks_json = excluded.tasks_json,
      max_workers = excluded.max_workers, processed = excluded.processed, failed = excluded.failed,
      cancelled = excluded.cancelled, last_heartbeat = excluded.last_heartbeat
    RETURNING ${NEED_NOT_WAIT}
  )
  SELECT beaten.job_id, beaten.asked FROM beat LEFT JOIN beaten ON true`;

/** $1 job_id text[] */
const GET = `SELECT ${jobColumns("j")} FROM ${JOBS} j
  WHERE j.job_id = any(array(SELECT unnest($1::text[])))`;
/** $1 job_id text[]. Answers what others can see of each, in one text. */
const LOOK = `SELECT job_id, concat_ws(' ', status, attempt, worker_id, cancel_requested_at IS NULL)
  FROM ${JOBS} WHERE job_id = any(array(SELECT unnest($1::text[])))`;
/** $1 job_id */
const RESULT = `SELECT ${jobColumns("j")}, j.result_json FROM ${JOBS} j WHERE j.job_id = $1::text`;
/** $1 job_id */
const PAYLOAD = `SELECT payload_json FROM ${JOBS} WHERE job_id = $1::text`;
/** $1 channel, $2 message */
const NOTIFY = "SELECT pg_notify($1::text, $2::text)";

export const SQL = {
  claim: CLAIM,
  settle: SETTLE,
  cancel: CANCEL,
  heartbeat: HEARTBEAT,
  get: GET,
  look: LOOK,
  result: RESULT,
  payload: PAYLOAD,
  notify: NOTIFY,
} as const;
