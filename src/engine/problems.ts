/**
 * What is wrong, as someone on call needs it: one line each, what it is and what to do. Pure: judged
 * from one look at the ledger. A problem is something that keeps jobs from running, from being taken,
 * or from being trusted; a job that failed is none.
 */
import { formatJobId } from "../job/id.js";
import type { Job } from "../job/job.js";
import type { LedgerReport, WorkerRecord } from "../ledger/ledger.js";

export interface Problem {
  /** For machines; the words of `message` may change. */
  readonly kind: ProblemKind;
  readonly message: string;
}

export type ProblemKind =
  | "dispatch_down"
  | "maintenance_down"
  | "slow_ledger"
  | "clock"
  | "no_worker"
  | "unserved_task"
  | "lost_worker"
  | "stuck_jobs"
  | "queue_full"
  | "overdue"
  | "idle_workers";

/** Of the engine's settings: what things are judged by. */
export interface Measures {
  readonly asyncTimeoutMs: number;
  readonly asyncMaxQueue: number;
  readonly pollIntervalMs: number;
  readonly workerTimeoutMs: number;
}

export interface Look {
  readonly report: LedgerReport;
  readonly settings: Measures;
  /** How long the ledger took to answer. */
  readonly latencyMs: number;
  /** This machine's clock, when the ledger read its own. */
  readonly localNowMs: number;
  /** Why this process's own worker can't work, as a sentence; null: it can, or there is none. */
  readonly dispatchFault: string | null;
  /** Why this process's maintenance can't do its work, likewise. */
  readonly maintenanceFault: string | null;
}

/** Readiness probes give up after as much. */
const SLOW_MS = 1_000;
/** Machines that set their clocks by the network differ by less. */
const CLOCK_TOLERANCE_MS = 5_000;
/** A worker with a free slot claims within one interval; this many, and it does not look any more. */
const MISSED_POLLS = 10;
const LEAST_IDLE_MS = 15_000;
/** Maintenance ends what has waited too long within a few seconds. */
const OVERDUE_GRACE_MS = 30_000;
/** Named one by one; more would hide the other problems. */
const MAX_NAMED = 5;

export function problemsOf(look: Look): Problem[] {
  return [
    ...ledgerProblems(look),
    ...workerProblems(look),
    ...stuckProblems(look),
    ...depthProblems(look),
    ...waitProblems(look),
  ];
}

/** Judged by the ledger's clock, as the ledger itself does. */
export function isLost(
  { lastHeartbeatMs }: WorkerRecord,
  { report, settings }: Pick<Look, "report" | "settings">,
): boolean {
  return report.nowMs - lastHeartbeatMs > settings.workerTimeoutMs;
}

/** How long a job has been due without being claimed. */
export function waitedMs({ createdAtMs, runAtMs }: Job, nowMs: number): number {
  return Math.max(0, nowMs - Math.max(createdAtMs, runAtMs));
}

function ledgerProblems(look: Look): Problem[] {
  const { report, latencyMs, localNowMs, dispatchFault, maintenanceFault } = look;
  const problems: Problem[] = [];
  if (dispatchFault !== null)
    problems.push({
      kind: "dispatch_down",
      message: `the worker of this process is cut off: ${dispatchFault}; its log says why, and it goes on by itself once that is mended`,
    });
  // One that can't be reached needs to be told once.
  else if (maintenanceFault !== null)
    problems.push({
      kind: "maintenance_down",
      message: `this process can't clear away jobs that are old, overdue or stuck: ${maintenanceFault}; its log says which and why, and it goes on by itself once that is mended`,
    });
  if (latencyMs > SLOW_MS)
    problems.push({
      kind: "slow_ledger",
      message: `the ledger took ${seconds(latencyMs)} to answer; look at its disk, its server, and who else loads them`,
    });
  const offMs = report.nowMs - localNowMs;
  if (Math.abs(offMs) > CLOCK_TOLERANCE_MS + latencyMs)
    problems.push({
      kind: "clock",
      message: `this machine's clock is ${seconds(Math.abs(offMs))} ${offMs > 0 ? "behind" : "ahead of"} the ledger's; set it by the network (NTP): times in its log and in run_at are off by that`,
    });
  const ahead = report.workers.filter(
    ({ lastHeartbeatMs }) => lastHeartbeatMs - report.nowMs > CLOCK_TOLERANCE_MS,
  );
  return [
    ...problems,
    ...firstOf(
      ahead.map(({ workerId, lastHeartbeatMs }) => ({
        kind: "clock",
        message: `the last heartbeat of ${workerId} lies ${seconds(lastHeartbeatMs - report.nowMs)} in the future: the clock was set back, and until it has caught up no lost worker is noticed; restart the workers`,
      })),
      "workers whose last heartbeat lies in the future",
    ),
  ];
}

function workerProblems(look: Look): Problem[] {
  const { counts, waiting, oldestQueued } = look.report;
  // What is not due yet waits for its time, not for a worker.
  if (oldestQueued === null) return [];
  const living = look.report.workers.filter((worker) => !isLost(worker, look));
  const working = living.filter(({ state }) => state === "running");
  if (working.length === 0) {
    const none = living.length > 0 ? "every living worker is shutting down" : "no worker lives";
    return [
      {
        kind: "no_worker",
        message: `${waitingJobs(counts.queued)} and ${none}; start one: jobtable worker TASKS, or jobtable serve TASKS`,
      },
    ];
  }
  const unserved = waiting.filter(({ task }) => !working.some(({ tasks }) => tasks.includes(task)));
  return firstOf(
    unserved.map(({ task, queued }) => ({
      kind: "unserved_task",
      message: `${waitingJobs(queued, ` of task ${task}`)} and no living worker runs it; start a worker with that task's file, or cancel them`,
    })),
    "tasks with jobs that wait, which no living worker runs",
  );
}

function stuckProblems(look: Look): Problem[] {
  const { stuck, workers } = look.report;
  const lost = workers.filter((worker) => isLost(worker, look));
  const someoneLives = workers.length > lost.length;
  const remedy = someoneLives
    ? "a living worker frees them within seconds; if they stay, look at its log"
    : "start a worker: it frees them";
  const silent = lost.flatMap(({ workerId, host, pid, lastHeartbeatMs }): Problem[] => {
    const held = stuck.filter((job) => job.workerId === workerId);
    if (held.length === 0) return [];
    const place = `${host.split("/")[0] ?? host}, pid ${pid}`;
    const silence = seconds(look.report.nowMs - lastHeartbeatMs);
    const message = `${workerId} (${place}) has been silent for ${silence} and holds ${named(held)}; ${remedy}`;
    return [{ kind: "lost_worker", message }];
  });
  const problems = firstOf(silent, "silent workers that hold jobs");
  const others = stuck.filter((job) => !lost.some(({ workerId }) => workerId === job.workerId));
  if (others.length > 0)
    problems.push({
      kind: "stuck_jobs",
      message: `running jobs without a heartbeat: ${named(others)}; ${remedy}`,
    });
  return problems;
}

function depthProblems({
  report: { counts },
  settings: { asyncMaxQueue: bound },
}: Look): Problem[] {
  const depth = counts.queued + counts.running;
  if (bound <= 0)
    return [
      {
        kind: "queue_full",
        message: `async_max_queue is ${bound}: every new job is refused; raise it`,
      },
    ];
  if (depth < bound) return [];
  return [
    {
      kind: "queue_full",
      message: `${depth} jobs wait or run and async_max_queue is ${bound}: new ones are refused; add workers, raise it, or find what holds the jobs up`,
    },
  ];
}

function waitProblems(look: Look): Problem[] {
  const { report, settings } = look;
  const { oldestQueued: job, counts } = report;
  if (job === null) return [];
  const waited = waitedMs(job, report.nowMs);
  const id = `${formatJobId(job.jobId)} (task ${job.task})`;
  const limitMs = settings.asyncTimeoutMs;
  if (limitMs > 0 && waited > limitMs + OVERDUE_GRACE_MS)
    return [
      {
        kind: "overdue",
        message: `${id} has waited ${seconds(waited)}, longer than async_timeout (${seconds(limitMs)}), and nobody has ended it; start a worker, or look at the workers' logs for what keeps maintenance from its work`,
      },
    ];
  const able = report.workers.filter(
    (worker) =>
      worker.state === "running" && worker.tasks.includes(job.task) && !isLost(worker, look),
  );
  const slots = able.reduce((sum, { maxWorkers }) => sum + maxWorkers, 0);
  const free = slots - counts.running;
  if (free <= 0 || waited < Math.max(MISSED_POLLS * settings.pollIntervalMs, LEAST_IDLE_MS))
    return [];
  return [
    {
      kind: "idle_workers",
      message: `${id} has waited ${seconds(waited)} although ${free} of ${slots} slots run no job; synchronous requests may hold them, else look at the workers' logs and restart them`,
    },
  ];
}

function waitingJobs(count: number, which = ""): string {
  return count === 1 ? `1 job${which} waits` : `${count} jobs${which} wait`;
}

/** The first few of one kind as they are, and of the others how many there are. */
function firstOf(all: readonly Problem[], what: string): Problem[] {
  const first = all.slice(0, MAX_NAMED);
  const next = all[MAX_NAMED];
  if (next === undefined) return first;
  const more = all.length - first.length;
  return [...first, { kind: next.kind, message: `and ${more} more ${what}` }];
}

function named(stuck: readonly Job[]): string {
  const ids = stuck.slice(0, MAX_NAMED).map(({ jobId }) => formatJobId(jobId));
  const more = stuck.length > ids.length ? ` and ${stuck.length - ids.length} more` : "";
  return ids.join(", ") + more;
}

/** `1.5 s`, `42 s`, `5 min`, `3 h`: rough, for reading. */
function seconds(ms: number): string {
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)} s`;
  if (ms < 120_000) return `${Math.round(ms / 1_000)} s`;
  return ms < 7_200_000 ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / 3_600_000)} h`;
}
