/** A job as people read it. */
import type { JobView } from "../client/replies.js";
import { stateColour, type Look } from "./look.js";
import { fields, table, type Column } from "./table.js";
import { clean, formatMs, safeJson } from "./text.js";

export function jobJsonText(job: JobView): string {
  return safeJson(JSON.stringify(job));
}

/** All that is known of a job, one field per line. */
export function jobFields(job: JobView, look: Look): string {
  const asked = job.cancel_requested === true ? "its worker was told to stop" : null;
  return fields([
    ["job", job.job_id],
    ["state", job.state, stateColour(job.state, look)],
    ["task", job.task],
    ["created", job.created_at],
    ["started", job.started_at ?? null],
    ["finished", job.finished_at ?? null],
    ["elapsed", formatMs(job.elapsed_ms)],
    ["attempt", `${job.attempt} of ${job.max_attempts}`],
    ["worker", job.worker_id ?? null],
    ["heartbeat", job.last_heartbeat ?? null],
    ["cancel", asked],
    ["request id", job.req_id ?? null],
    ["key", job.idempotency_key ?? null],
    ["progress", progressText(job)],
    ...(job.attempt_errors ?? []).map(
      ({ attempt, at, worker_id, error }) =>
        [`attempt ${attempt}`, `${at} ${worker_id}: ${error}`] as const,
    ),
    ["reason", job.reason ?? null],
    ["error", job.error ?? null],
  ]);
}

/** One line on how far it is. */
export function jobLine(job: JobView): string {
  const attempt = job.max_attempts > 1 ? `, attempt ${job.attempt} of ${job.max_attempts}` : "";
  const progress = progressText(job);
  const tail = job.error ?? job.reason ?? progress;
  const why = tail === null ? "" : `: ${tail}`;
  return clean(`${job.job_id} ${job.state} after ${formatMs(job.elapsed_ms)}${attempt}${why}`);
}

/** What makes one look at a job worth another line. */
export function isNews(before: JobView | null, now: JobView): boolean {
  return (
    before?.state !== now.state ||
    before.attempt !== now.attempt ||
    progressText(before) !== progressText(now)
  );
}

function progressText({ progress }: JobView): string | null {
  if (progress === undefined) return null;
  return typeof progress === "string" ? progress : JSON.stringify(progress);
}

const COLUMNS: readonly Column[] = [
  { head: "JOB", importance: 6 },
  { head: "STATE", importance: 5, paint: stateColour },
  { head: "TASK", importance: 4, least: 8 },
  { head: "CREATED", importance: 1 },
  { head: "ELAPSED", importance: 3 },
  { head: "ERROR", importance: 2, least: 12 },
];

export function jobTable(jobs: readonly JobView[], look: Look): string {
  const rows = jobs.map((job) => [
    job.job_id,
    job.state,
    job.task,
    job.created_at,
    formatMs(job.elapsed_ms),
    job.error ?? job.reason ?? "",
  ]);
  return table(COLUMNS, rows, look);
}
