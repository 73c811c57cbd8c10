/**
 * One look at the whole ledger, and what is wrong with it: for whoever asks why jobs don't run. It
 * starts nothing and changes nothing.
 */
import type { Counts, Ledger, WorkerRecord } from "../ledger/ledger.js";
import type { Job } from "../job/job.js";
import type { Clock } from "../runtime/clock.js";
import {
  isLost,
  problemsOf,
  waitedMs,
  type Look,
  type Measures,
  type Problem,
} from "./problems.js";

export interface Diagnosis {
  /** The gravest first; empty: all is well. */
  readonly problems: readonly Problem[];
  readonly maxWorkers: number;
  readonly pollIntervalMs: number;
  readonly ledger: {
    /** `memory`, `sqlite` or `postgres`. */
    readonly kind: string;
    /** Its name and version. */
    readonly software: string;
    /** Null where it has none. */
    readonly schemaVersion: number | null;
    readonly latencyMs: number;
    /** Its own clock. */
    readonly nowMs: number;
  };
  readonly counts: Counts;
  /** Bound on queued + running, as set here. */
  readonly depthLimit: number;
  readonly oldestQueued: { readonly job: Job; readonly waitedMs: number } | null;
  readonly workers: readonly DiagnosedWorker[];
  /** Running jobs whose own beat is too old, or whose worker is lost. */
  readonly stuck: readonly Job[];
  /** Tasks with waiting jobs that no living worker runs. */
  readonly unserved: readonly { readonly task: string; readonly queued: number }[];
}

export type DiagnosedWorker = Omit<WorkerRecord, "state"> & {
  /** `lost`: no beat for `worker_timeout`, by the ledger's clock. */
  readonly state: WorkerRecord["state"] | "lost";
};

export interface DiagnosisPorts {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly settings: Measures & { readonly maxWorkers: number; readonly jobTimeoutMs: number };
  /** See `Look`. */
  readonly dispatchFault: () => string | null;
  readonly maintenanceFault: () => string | null;
}

/** Of stuck jobs and of tasks: more than anyone reads. */
const CHUNK = 100;

/** Rejects with a `LedgerError` when the ledger is out of reach. */
export async function diagnose(ports: DiagnosisPorts): Promise<Diagnosis> {
  const { ledger, clock, settings } = ports;
  const { workerTimeoutMs, jobTimeoutMs } = settings;
  const [beganMs, beganAtMs] = [clock.monotonicMs(), clock.nowMs()];
  const report = await ledger.inspect({ workerTimeoutMs, jobTimeoutMs, chunk: CHUNK });
  const latencyMs = clock.monotonicMs() - beganMs;
  const look: Look = {
    report,
    settings,
    latencyMs,
    localNowMs: beganAtMs + latencyMs / 2,
    dispatchFault: ports.dispatchFault(),
    maintenanceFault: ports.maintenanceFault(),
  };
  const { nowMs, software, schemaVersion, counts, oldestQueued, stuck } = report;
  const workers = report.workers.map((worker) => ({
    ...worker,
    state: isLost(worker, look) ? ("lost" as const) : worker.state,
  }));
  return {
    problems: problemsOf(look),
    maxWorkers: settings.maxWorkers,
    pollIntervalMs: settings.pollIntervalMs,
    ledger: { kind: ledger.kind, software, schemaVersion, latencyMs, nowMs },
    counts,
    depthLimit: settings.asyncMaxQueue,
    oldestQueued:
      oldestQueued === null ? null : { job: oldestQueued, waitedMs: waitedMs(oldestQueued, nowMs) },
    workers,
    stuck,
    unserved: report.waiting.filter(
      ({ task }) =>
        !workers.some(({ state, tasks }) => state === "running" && tasks.includes(task)),
    ),
  };
}
