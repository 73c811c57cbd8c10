/**
 * The two statements that submit: one for jobs of which none has an idempotency key, and one that looks
 * for their keys first; statements.ts has the rules.
 *
 * The keys are looked for in the snapshot that the statement begins with, and the row of counts, which
 * all submits lock, may be had only later: another submit may have recorded a key in between. Then the
 * unique index refuses the record, nothing of the call is left, and the caller runs it again, to find
 * the key. Waiting for the lock first and looking afterwards would take a second statement while all
 * other submits wait. What is asked and what is known meet in hashed subplans, never in a join: a plan made
 * for ten keys would compare each of ten thousand with each other.
 */
import { asMs, jobCells } from "./rows.js";
import { COUNTS, JOBS, ms, NOW, to } from "./statements.js";

/** What a call of this size asks for, and whether it is met: by one at least, or by all of a whole call. */
const admission = (asked: string, from: string): string => `
  admission AS (
    UPDATE ${COUNTS} SET
      queued = queued + least(${asked}, $14::bigint - queued - running),
      granted = least(${asked}, $14::bigint - queued - running)
    ${from} WHERE only_row = 1 AND ${asked} > 0
      AND queued + running + CASE WHEN $17::boolean THEN ${asked} ELSE 1 END <= $14::bigint
    RETURNING granted, queued + running AS depth
  )`;

const COLUMNS = `job_id, task, payload_json, plan_id, phase, queue, priority, run_at, max_attempts,
      timeout_ms, schema_version, request_id, delay_ms`;
/** What is asked for, one row each. @param more arrays. @param names of their columns. */
const asked = (more = "", names = ""): string => `
      unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::int4[],
        $8::float8[], $9::int4[], $10::int8[], $11::int4[], $12::text[], $13::float8[]${more})
      WITH ORDINALITY AS a (${COLUMNS}${names}, place)`;

/** A refused id that is used already is inserted all the same, and so rejects the call as an admitted one does. */
const recorded = (from: string, place: string, keyed: string): string => `
  recorded AS (
    INSERT INTO ${JOBS} (job_id, task, payload_json, plan_id, phase, queue, priority, run_at,
      max_attempts, timeout_ms, schema_version, request_id, idempotency_key, payload_fingerprint,
      status, attempt, created_at)
    SELECT a.job_id, a.task, a.payload_json, a.plan_id, a.phase, coalesce(a.queue, 'default'),
      coalesce(a.priority, 0), coalesce(
        greatest(timestamptz 'epoch' + ${ms("a.run_at")}, ${NOW} + ${ms("a.delay_ms")}),
        ${NOW}),
      coalesce(a.max_attempts, 1), a.timeout_ms, coalesce(a.schema_version, 1), a.request_id,
      ${keyed}, ${to("release")}, 0, ${NOW}
    FROM ${from}
    WHERE ${place} <= coalesce((SELECT granted FROM admission), 0)
      OR (SELECT true FROM ${JOBS} used WHERE used.job_id = a.job_id LIMIT 1)
  )`;

const answer = (known: string): string => `
  SELECT admission.granted::text AS granted, admission.depth::text AS depth,
    (${asMs(NOW)})::text AS now_ms, (before.queued + before.running)::text AS depth_before,
    ${known} AS known, CASE WHEN admission.granted > 0 AND $16::text IS NOT NULL
      THEN pg_notify($15::text, $16::text) END AS told
  FROM ${COUNTS} before LEFT JOIN admission ON true WHERE before.only_row = 1`;

/**
 * $1 job_id text[], $2 task text[], $3 payload_json text[]; of the others an empty array means null
 * or the default for all: $4 plan_id text[], $5 phase text[], $6 queue text[], $7 priority int4[],
 * $8 run_at float8[] (ms since the epoch), $9 max_attempts int4[], $10 timeout_ms int8[],
 * $11 schema_version int4[] (default 1), $12 request_id text[], $13 delay float8[] (ms);
 * $14 the bound, $15 channel, $16 message or null, $17 whether all or none; $18 how many jobs.
 * Answers, as text: how many were admitted (null: none), the depth with them, now (ms), the depth seen
 * before, null.
 */
const SUBMIT = `
  WITH ${admission("$18::bigint", "")},
  ${recorded(asked(), "a.place", "NULL, NULL")} ${answer("NULL::text")}`;

/**
 * $1 to $17 as above; $18 idempotency_key text[] (each key once; null: none), $19 payload_fingerprint
 * text[]. Answers as above, and a JSON array of the jobs that had one of the keys before, each an array
 * of the cells of a job and its fingerprint; null where there is none.
 */
const SUBMIT_KEYED = `
  WITH asked AS MATERIALIZED (
    SELECT * FROM ${asked(", $18::text[], $19::text[]", ", key, fingerprint")}
  ), known AS MATERIALIZED (
    SELECT j.idempotency_key AS key, coalesce(j.payload_fingerprint, '') AS fingerprint,
      ARRAY[${jobCells("j")}, j.payload_fingerprint] AS cells
    FROM ${JOBS} j WHERE j.idempotency_key IS NOT NULL
      AND j.idempotency_key COLLATE "C" = any(array(SELECT unnest($18::text[])))
  ), fresh AS MATERIALIZED (
    SELECT *, row_number() OVER (ORDER BY place) AS nth FROM asked
    WHERE (key IN (SELECT key FROM known)) IS NOT TRUE
  ), sums AS (
    SELECT CASE WHEN $17::boolean AND EXISTS (SELECT FROM known WHERE (key, fingerprint) NOT IN (
        SELECT key, coalesce(fingerprint, '') FROM asked WHERE key IS NOT NULL))
      THEN 0 ELSE count(*) END AS n FROM fresh
  ), ${admission("sums.n", "FROM sums")},
  ${recorded("fresh a", "a.nth", "a.key, a.fingerprint")}
  ${answer("(SELECT json_agg(cells) FROM known)::text")}`;

export const SUBMITTING_SQL = { submit: SUBMIT, submitKeyed: SUBMIT_KEYED } as const;
