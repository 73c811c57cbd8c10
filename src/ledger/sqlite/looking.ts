/** The verbs that only read. */
import { ALL_STATUSES, isTerminal } from "../../job/state.js";
import { text } from "../sql/rows.js";
import type { Answers, Cell, OperationOf, Row } from "./protocol.js";
import { integer } from "./rows.js";
import { STATUS_PLACES } from "./statements.js";
import type { Transaction } from "./transaction.js";
import { chunkSize, findStuck } from "./sweeping.js";
import { waitingGroups, waitingTasks } from "./waiting.js";

/** A list reads no more rows than this for one page, whatever its filter leaves out: some 10 ms. */
const ROWS_PER_PAGE = 10_000;
const LARGEST_PAGE = 1_000;
/** Above every id: ids are digits and capitals. */
const ABOVE_ALL_IDS = "~";

const LIVE_STATUSES: ReadonlySet<string> = new Set(
  ALL_STATUSES.filter((status) => !isTerminal(status)),
);

export function counts(tx: Transaction): Answers["counts"] {
  const { queued, running, terminal } = tx.counts;
  const oldestRunAt = queued > 0 ? (oldest(tx)?.runAt ?? null) : null;
  return { queued, running, terminal, oldestRunAt };
}

/** The queued job that has been due for longest, or is due soonest. */
function oldest({ run }: Transaction): { readonly runAt: string; readonly jobId: string } | null {
  let first: { readonly runAt: string; readonly jobId: string } | null = null;
  for (const { task, priority } of waitingGroups(run, waitingTasks(run))) {
    const row = run.firstOfGroup.get(task, priority);
    const runAt = text(row?.[0]);
    if (first === null || runAt < first.runAt) first = { runAt, jobId: text(row?.[1]) };
  }
  return first;
}

export function inspect(tx: Transaction, limit: OperationOf<"inspect">): Answers["inspect"] {
  const { run } = tx;
  const job = (jobId: string): Row[] => [run.job.get(jobId) ?? []].filter((row) => row.length > 0);
  const first = oldest(tx);
  const chunk = chunkSize(limit.chunk);
  const { rows: stuck } = findStuck(tx, { ...limit, goneWorkerIds: [] });
  const waiting = [...waitingTasks(run)]
    .map((task) => [task, integer(run.countTask.get(task)?.[0])] as const)
    .sort(([a, ofA], [b, ofB]) => ofB - ofA || (a < b ? -1 : 1));
  const software = run.software.get();
  return {
    software: text(software?.[0]),
    schemaVersion: integer(software?.[1]),
    counts: counts(tx),
    workers: run.workers.all(),
    oldest: first === null || first.runAt > tx.now ? null : (job(first.jobId)[0] ?? null),
    stuck: stuck.flatMap((row) => job(text(row[1]))),
    waiting: waiting.slice(0, chunk),
  };
}

export function look({ run }: Transaction, jobIds: readonly string[]): number[] {
  return run.looks.all(JSON.stringify(jobIds)).map(([seen]) => integer(seen));
}

/** Ids and what is seen of them, in turn; null where that can't be told, or is too much. */
export function recent(tx: Transaction, limit: number): Answers["recent"] {
  const { run, counts, recentEnds } = tx;
  const running = run.runningLooks.all(limit + 1).flat();
  const since = recentEnds.since(run, counts, limit);
  if (since === null || running.length > limit * 2) return null;
  const ended = since.rowids.flatMap((rowid) => run.lookAtRow.get(rowid) ?? []);
  return { ended, running, forgotten: since.forgotten };
}

/** Newest first. What is live is found by its own index; the rest by a bounded walk down the ids. */
export function list(tx: Transaction, query: OperationOf<"list">): Answers["list"] {
  const size = Math.min(Math.max(Math.floor(query.limit), 1), LARGEST_PAGE);
  const below = query.cursor ?? ABOVE_ALL_IDS;
  const { statuses, planId } = query;
  if (planId !== null) return listFiltered(tx, query, size, [planId, below]);
  if (statuses?.every((status) => LIVE_STATUSES.has(status)) === true)
    return page(listLive(tx, { ...query, statuses }, below, size + 1), size, null);
  if (statuses !== null || query.task !== null) return listFiltered(tx, query, size, [below]);
  return page(tx.run.list.all(below, "", size + 1), size, null);
}

/** @param from the plan, where only its jobs are asked for; and the id that the page begins below. */
function listFiltered(
  { run }: Transaction,
  { statuses, task }: OperationOf<"list">,
  size: number,
  from: readonly [below: string] | readonly [planId: string, below: string],
): Answers["list"] {
  const ofPlan = from.length > 1;
  const end = (ofPlan ? run.planIdBelow : run.idBelow).get(...from, ROWS_PER_PAGE - 1);
  const lowest = end === undefined ? "" : text(end[0]);
  const rows = (ofPlan ? run.listPlan : run.listFiltered).all(
    ...from,
    lowest,
    task,
    task,
    ...statusPlaces([...new Set<string>(statuses ?? ALL_STATUSES)]),
    size + 1,
  );
  return page(rows, size, end === undefined ? null : lowest);
}

/** @param lookedTo the last id that was looked at, where there may be more below it. */
function page(rows: readonly Row[], size: number, lookedTo: string | null): Answers["list"] {
  if (rows.length <= size) return { jobs: rows, nextCursor: lookedTo };
  const jobs = rows.slice(0, size);
  return { jobs, nextCursor: text(jobs.at(-1)?.[0]) };
}

function listLive(
  { run }: Transaction,
  { statuses, task }: { readonly statuses: readonly string[]; readonly task: string | null },
  below: string,
  limit: number,
): Row[] {
  const rows: Row[] = [];
  if (statuses.includes("queued"))
    rows.push(
      ...(task === null
        ? run.listQueued.all(below, limit)
        : run.listQueuedTask.all(task, below, limit)),
    );
  if (statuses.includes("running")) rows.push(...run.listRunning.all(below, task, task, limit));
  return rows.sort((a, b) => (text(a[0]) < text(b[0]) ? 1 : -1)).slice(0, limit);
}

function statusPlaces(statuses: readonly string[]): Cell[] {
  return Array.from({ length: STATUS_PLACES }, (_, index) => statuses[index] ?? null);
}
