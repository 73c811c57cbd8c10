/**
 * The verbs that only read. Lists are newest first; a filter looks at a bounded number of rows, whatever
 * it leaves out, and only what waits or runs is found by its own indexes.
 */
import type { Job } from "../../job/job.js";
import { ALL_STATUSES, isTerminal } from "../../job/state.js";
import type {
  Counts,
  InspectLimit,
  JobPage,
  JobResult,
  LedgerReport,
  ListQuery,
} from "../ledger.js";
import { AFTER_JOB, text, textOrNull } from "../sql/rows.js";
import { textArray } from "./arrays.js";
import {
  chunkSize,
  number,
  numberOrNull,
  storableAgeMs,
  toJob,
  toWorker,
  type Row,
} from "./rows.js";
import type { RunStatement } from "./session.js";

/** A list looks at no more rows than this for one page: some 10 ms. */
const ROWS_PER_PAGE = 10_000;
const LARGEST_PAGE = 1_000;
/** Above every id: ids are digits and capitals. */
const ABOVE_ALL_IDS = "~";

export async function get(run: RunStatement, jobIds: readonly string[]): Promise<(Job | null)[]> {
  const rows = await run("get", [textArray(jobIds)]);
  const found = new Map(rows.map((row) => [row[0], toJob(row)]));
  return jobIds.map((jobId) => found.get(jobId) ?? null);
}

export async function result(run: RunStatement, jobId: string): Promise<JobResult | null> {
  const [row] = await run("result", [jobId]);
  if (row === undefined) return null;
  return { job: toJob(row), resultJson: textOrNull(row[AFTER_JOB] ?? null) };
}

export async function payload(run: RunStatement, jobId: string): Promise<string | null> {
  const [row] = await run("payload", [jobId]);
  return textOrNull(row?.[0] ?? null);
}

export async function counts(run: RunStatement): Promise<Counts> {
  const [row] = await run("counts", []);
  return toCounts(row);
}

export async function inspect(run: RunStatement, limit: InspectLimit): Promise<LedgerReport> {
  const [row] = await run("inspect", [
    chunkSize(limit.chunk),
    storableAgeMs(limit.workerTimeoutMs),
    storableAgeMs(limit.jobTimeoutMs),
  ]);
  const json = (at: number): unknown => JSON.parse(row?.[at] ?? "null");
  const oldest = json(7) as Row | null;
  return {
    nowMs: number(row?.[4]),
    software: `PostgreSQL ${text(row?.[5]).split(" ", 1).join("")}`,
    schemaVersion: numberOrNull(row?.[6] ?? null),
    counts: toCounts(row),
    workers: ((json(8) ?? []) as Row[]).map(toWorker),
    oldestQueued: oldest === null ? null : toJob(oldest),
    stuck: ((json(9) ?? []) as Row[]).map(toJob),
    waiting: ((json(10) ?? []) as [string, number][]).map(([task, queued]) => ({ task, queued })),
  };
}

function toCounts(row: Row | undefined): Counts {
  const [queued, running, terminal] = [number(row?.[0]), number(row?.[1]), number(row?.[2])];
  const waitedMs = numberOrNull(row?.[3] ?? null) ?? -1;
  return {
    queued,
    running,
    total: queued + running + terminal,
    oldestQueuedMs: waitedMs < 0 ? null : waitedMs,
  };
}

export async function list(run: RunStatement, query: ListQuery): Promise<JobPage> {
  const { statuses, task, planId } = query;
  const size = Math.min(Math.max(Math.floor(query.limit), 1), LARGEST_PAGE);
  const below = query.cursor ?? ABOVE_ALL_IDS;
  const filter = [
    below,
    size + 1,
    textArray(statuses ?? ALL_STATUSES),
    task ?? null,
    ROWS_PER_PAGE,
  ];
  if (planId !== undefined) return filtered(await run("listPlan", [...filter, planId]), size);
  if (statuses === undefined && task === undefined)
    return page(await run("list", [below, size + 1]), size, null);
  const near = filtered(await run("listFiltered", filter), size);
  const isWhole = near.jobs.length === size || near.nextCursor === undefined;
  if (isWhole || statuses?.some(isTerminal) !== false) return near;
  // They are few, or far below: among the newest a long queue would have filled the page.
  const live = [below, size + 1, textArray(statuses), task ?? null];
  return page(await run("listLive", live), size, null);
}

/** @param rows each with the last id that was looked at before a job, or before nulls. */
function filtered(rows: readonly Row[], size: number): JobPage {
  const jobs = rows.map((row) => row.slice(1)).filter(([jobId]) => jobId !== null);
  return page(jobs, size, textOrNull(rows[0]?.[0] ?? null));
}

/** @param lookedTo the last id that was looked at, where there may be more below it. */
function page(rows: readonly Row[], size: number, lookedTo: string | null): JobPage {
  const jobs = rows.slice(0, size).map(toJob);
  const nextCursor = rows.length > size ? (jobs.at(-1)?.jobId ?? null) : lookedTo;
  return nextCursor === null ? { jobs } : { jobs, nextCursor };
}
