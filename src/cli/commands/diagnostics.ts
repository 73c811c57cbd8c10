/** `jobtable diagnostics`: the settings of the workers, the depth of the queue, and who works on it. */
import type { Command } from "commander";
import type { Config } from "../../config/settings.js";
import { maskStore } from "../../config/values.js";
import type { Counts, WorkerRecord } from "../../ledger/ledger.js";
import { systemClock } from "../../runtime/clock.js";
import { EXIT, type ExitCode } from "../exit-code.js";
import { withLedger } from "../session.js";
import { stateColour, type Look } from "../look.js";
import { table, type Column } from "../table.js";
import { formatMs } from "../text.js";
import { addVerb, type Invocation, type Runner } from "../verb.js";

export function addDiagnostics(program: Command, runner: Runner): void {
  addVerb(program, runner, {
    usage: "diagnostics",
    summary: "Show the queue's depth and every worker's health",
    example: "jobtable diagnostics --store sqlite:.jobtable/jobs.db",
    settings: [
      "store",
      "async_enabled",
      "max_workers",
      "poll_interval",
      "worker_timeout",
      "log_level",
    ],
    run,
  });
}

async function run(invocation: Invocation): Promise<ExitCode> {
  const { config, json, terminal } = invocation;
  const [counts, workers] = await withLedger(invocation, [], ({ ledger }) =>
    Promise.all([ledger.counts(), ledger.workers()]),
  );
  const nowMs = systemClock.nowMs();
  const shown = workers.map((worker) => ({ worker, state: stateOf(worker, config, nowMs) }));
  terminal.print(
    json ? asJson(config, counts, shown) : asText(config, counts, shown, terminal.look),
  );
  return EXIT.done;
}

interface ShownWorker {
  readonly worker: WorkerRecord;
  readonly state: WorkerRecord["state"] | "lost";
}

/** The row of a worker that was killed stays until another one finds it. */
function stateOf(worker: WorkerRecord, config: Config, nowMs: number): ShownWorker["state"] {
  return nowMs - worker.lastHeartbeatMs > config.workerTimeoutMs ? "lost" : worker.state;
}

function asJson(config: Config, counts: Counts, workers: readonly ShownWorker[]): string {
  return JSON.stringify(
    {
      async: {
        enabled: config.asyncEnabled,
        max_workers: config.maxWorkers,
        poll_interval_ms: config.pollIntervalMs,
      },
      store: maskStore(config.store),
      depth: {
        queued: counts.queued,
        running: counts.running,
        total: counts.total,
        oldest_queued_ms: counts.oldestQueuedMs,
      },
      workers: workers.map(({ worker, state }) => ({
        worker_id: worker.workerId,
        state,
        processed: worker.processed,
        failed: worker.failed,
        cancelled: worker.cancelled,
        started_at: formatTime(worker.startedAtMs),
        last_heartbeat: formatTime(worker.lastHeartbeatMs),
        max_workers: worker.maxWorkers,
        tasks: worker.tasks,
        host: hostName(worker),
        pid: worker.pid,
      })),
    },
    null,
    2,
  );
}

const COLUMNS: readonly Column[] = [
  { head: "WORKER", importance: 8 },
  { head: "STATE", importance: 7, paint: stateColour },
  { head: "DONE", importance: 4 },
  { head: "FAILED", importance: 3 },
  { head: "CANCELLED", importance: 1 },
  { head: "LAST HEARTBEAT", importance: 6 },
  { head: "HOST", importance: 2, least: 10 },
  { head: "TASKS", importance: 5, least: 10 },
];

function asText(
  config: Config,
  counts: Counts,
  workers: readonly ShownWorker[],
  look: Look,
): string {
  const oldest =
    counts.oldestQueuedMs === null ? "" : `; the oldest waits ${formatMs(counts.oldestQueuedMs)}`;
  const lines = [
    asyncLine(config),
    `Store: ${maskStore(config.store)}`,
    `Jobs: ${counts.queued} queued, ${counts.running} running, ${counts.total} in all${oldest}`,
  ];
  if (workers.length === 0) return [...lines, "Workers: none"].join("\n");
  const rows = workers.map(({ worker, state }) => [
    worker.workerId,
    state,
    String(worker.processed),
    String(worker.failed),
    String(worker.cancelled),
    formatTime(worker.lastHeartbeatMs),
    `${hostName(worker)}:${worker.pid}`,
    worker.tasks.join(","),
  ]);
  return [...lines, "", table(COLUMNS, rows, look)].join("\n");
}

function formatTime(timeMs: number): string {
  return new Date(timeMs).toISOString();
}

/** `Async workers: enabled, max_workers=4, poll_interval=1.0s` */
function asyncLine({ asyncEnabled, maxWorkers, pollIntervalMs }: Config): string {
  const seconds = pollIntervalMs / 1_000;
  const interval = Number.isInteger(seconds) ? seconds.toFixed(1) : String(seconds);
  const enabled = asyncEnabled ? "enabled" : "disabled";
  return `Async workers: ${enabled}, max_workers=${maxWorkers}, poll_interval=${interval}s`;
}

/** Without the boot and namespace that tell processes apart. */
function hostName({ host }: WorkerRecord): string {
  return host.split("/")[0] ?? host;
}
