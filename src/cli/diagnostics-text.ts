/** A diagnosis as people read it: what is wrong comes last, where the eye is. */
import type { DiagnosticsView } from "../client/replies.js";
import { painted, stateColour, type Look } from "./look.js";
import { fields, table, type Column } from "./table.js";
import { clean, formatMs } from "./text.js";

const WORKERS: readonly Column[] = [
  { head: "WORKER", importance: 8 },
  { head: "STATE", importance: 7, paint: stateColour },
  { head: "SLOTS", importance: 3 },
  { head: "DONE", importance: 4 },
  { head: "FAILED", importance: 2 },
  { head: "CANCELLED", importance: 1 },
  { head: "HEARTBEAT", importance: 6 },
  { head: "HOST", importance: 2, least: 10 },
  { head: "TASKS", importance: 5, least: 10 },
];
const STUCK: readonly Column[] = [
  { head: "STUCK JOB", importance: 4 },
  { head: "TASK", importance: 2, least: 8 },
  { head: "WORKER", importance: 3 },
  { head: "HEARTBEAT", importance: 1 },
];
const UNSERVED: readonly Column[] = [
  { head: "TASK WITHOUT A WORKER", importance: 2, least: 10 },
  { head: "WAITING", importance: 1 },
];

/** The rest is for machines: `--json` has it. */
const MAX_ROWS = 10;

/** @param asked the server or the store. */
export function diagnosticsText(seen: DiagnosticsView, asked: string, look: Look): string {
  return [
    overview(seen, asked),
    seen.workers.length === 0 ? "Workers: none" : workerTable(seen, look),
    ...(seen.stuck.length === 0 ? [] : [stuckTable(seen, look)]),
    ...(seen.unserved.length === 0 ? [] : [unservedTable(seen, look)]),
    problemLines(seen, look),
  ].join("\n\n");
}

function overview({ async, ledger, depth, oldest_queued: oldest }: DiagnosticsView, asked: string) {
  const interval = async.poll_interval_ms / 1_000;
  const seconds = Number.isInteger(interval) ? interval.toFixed(1) : String(interval);
  const enabled = async.enabled ? "enabled" : "disabled";
  const schema = ledger.schema_version === null ? "" : `, schema ${ledger.schema_version}`;
  return [
    `Async workers: ${enabled}, max_workers=${async.max_workers}, poll_interval=${seconds}s`,
    fields([
      ["Asked", asked],
      ["Ledger", `${ledger.software}${schema}, answered in ${formatMs(ledger.latency_ms)}`],
      [
        "Jobs",
        `${depth.queued} queued, ${depth.running} running (at most ${depth.limit} together), ${depth.total} in all`,
      ],
      [
        "Oldest",
        oldest === null
          ? null
          : `${oldest.job_id} (${oldest.task}) has waited ${formatMs(oldest.waited_ms)}`,
      ],
    ]),
  ].join("\n");
}

/** Ages, since the reader's clock may not be the ledger's. */
function ageAt(now: string, time: string): string {
  return `${formatMs(Math.max(0, Date.parse(now) - Date.parse(time)))} ago`;
}

function workerTable({ workers, ledger: { now } }: DiagnosticsView, look: Look): string {
  const rows = workers.map((worker) => [
    worker.worker_id,
    worker.state,
    String(worker.max_workers),
    String(worker.processed),
    String(worker.failed),
    String(worker.cancelled),
    ageAt(now, worker.last_heartbeat),
    `${worker.host}:${worker.pid}`,
    worker.tasks.join(","),
  ]);
  return table(WORKERS, rows, look);
}

function stuckTable({ stuck, ledger: { now } }: DiagnosticsView, look: Look): string {
  const rows = stuck
    .slice(0, MAX_ROWS)
    .map(({ job_id, task, worker_id, last_heartbeat }) => [
      job_id,
      task,
      worker_id ?? "",
      last_heartbeat === null ? "" : ageAt(now, last_heartbeat),
    ]);
  return table(STUCK, rows, look) + andMore(stuck);
}

function unservedTable({ unserved }: DiagnosticsView, look: Look): string {
  const rows = unserved.slice(0, MAX_ROWS).map(({ task, queued }) => [task, String(queued)]);
  return table(UNSERVED, rows, look) + andMore(unserved);
}

function andMore({ length }: readonly unknown[]): string {
  return length > MAX_ROWS ? `\nand ${length - MAX_ROWS} more` : "";
}

function problemLines({ ok, problems }: DiagnosticsView, look: Look): string {
  if (ok) return painted("green", look)("No problems found.");
  const head = problems.length === 1 ? "1 problem:" : `${problems.length} problems:`;
  const lines = problems.map(({ message }) => `- ${clean(message)}`);
  return [painted("red", look)(head), ...lines].join("\n");
}
