/** What the ledger tells of itself: a few looks at once, each bounded. */
import { QUEUED_COUNTED, type InspectLimit, type LedgerReport } from "../ledger.js";
import { counts } from "./looking.js";
import {
  asMs,
  chunkSize,
  jobColumns,
  number,
  storableAgeMs,
  text,
  toJob,
  toWorker,
} from "./rows.js";
import type { RunStatement } from "./session.js";
import { from, JOBS, ms, NOW } from "./statements.js";
import { GROUPS } from "./sweeping-statements.js";

/** Answers the server's time (ms), its version and the number of the last migration. */
const ABOUT = `SELECT ${asMs(NOW)}, current_setting('server_version'),
  (SELECT max(number) FROM :schema.jobtable_migrations)`;

const OLDEST = `
  WITH RECURSIVE ${GROUPS}
  SELECT ${jobColumns("j")} FROM groups g CROSS JOIN LATERAL (
    SELECT * FROM ${JOBS} WHERE ${from("claim")} AND task = g.task AND priority = g.priority
    ORDER BY run_at, job_id LIMIT 1) AS j
  WHERE j.run_at <= ${NOW} ORDER BY j.run_at, j.job_id LIMIT 1`;

/** $1 how many, $2 age (ms) of a worker's beat at which it is lost, $3 age (ms) of a job's own beat at which it is stuck. */
const STUCK = `
  SELECT ${jobColumns("j")} FROM ${JOBS} j
  LEFT JOIN :schema.async_workers w ON w.worker_id = j.worker_id
  WHERE j.${from("rescue")} AND (j.last_heartbeat < ${NOW} - ${ms("$3")}
    OR coalesce(w.last_heartbeat, j.last_heartbeat) < ${NOW} - ${ms("$2")})
  ORDER BY j.job_id LIMIT $1::int4`;

/** $1 how many tasks, $2 how many jobs of each are counted at most. */
const WAITING = `
  WITH RECURSIVE ${GROUPS}, tasks AS (SELECT DISTINCT task FROM groups ORDER BY task LIMIT $1::int4)
  SELECT task, (SELECT count(*) FROM (
    SELECT FROM ${JOBS} j WHERE j.${from("claim")} AND j.task = tasks.task LIMIT $2::int4) AS counted)
  FROM tasks ORDER BY task`;

export const INSPECTING_SQL = {
  about: ABOUT,
  oldest: OLDEST,
  stuck: STUCK,
  waiting: WAITING,
} as const;

export async function inspect(run: RunStatement, limit: InspectLimit): Promise<LedgerReport> {
  const chunk = chunkSize(limit.chunk);
  const [about, workers, oldest, stuck, waiting, counted] = await Promise.all([
    run("about", []),
    run("workers", []),
    run("oldest", []),
    run("stuck", [chunk, storableAgeMs(limit.workerTimeoutMs), storableAgeMs(limit.jobTimeoutMs)]),
    run("waiting", [chunk, QUEUED_COUNTED]),
    counts(run),
  ]);
  const [nowMs, version, schemaVersion] = about[0] ?? [];
  return {
    nowMs: number(nowMs),
    software: `PostgreSQL ${text(version)}`,
    schemaVersion: number(schemaVersion),
    counts: counted,
    workers: workers.map(toWorker),
    oldestQueued: oldest[0] === undefined ? null : toJob(oldest[0]),
    stuck: stuck.map(toJob),
    waiting: waiting.map(([task, queued]) => ({ task: text(task), queued: number(queued) })),
  };
}
