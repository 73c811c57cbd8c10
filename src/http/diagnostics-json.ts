/** A diagnosis as `GET /diagnostics` and `jobtable diagnostics --json` give it. */
import type { DiagnosedWorker, Diagnosis } from "../engine/diagnosis.js";
import { formatJobId } from "../job/id.js";
import type { Job } from "../job/job.js";

/** @param asyncEnabled off: there are no jobs here. */
export function diagnosticsJson(diagnosis: Diagnosis, asyncEnabled: boolean): string {
  const { problems, ledger, counts, oldestQueued } = diagnosis;
  return JSON.stringify({
    ok: problems.length === 0,
    problems,
    async: {
      enabled: asyncEnabled,
      max_workers: diagnosis.maxWorkers,
      poll_interval_ms: diagnosis.pollIntervalMs,
    },
    ledger: {
      kind: ledger.kind,
      software: ledger.software,
      schema_version: ledger.schemaVersion,
      latency_ms: Math.round(ledger.latencyMs * 10) / 10,
      now: iso(ledger.nowMs),
    },
    depth: {
      queued: counts.queued,
      running: counts.running,
      total: counts.total,
      limit: diagnosis.depthLimit,
      oldest_queued_ms: counts.oldestQueuedMs,
    },
    oldest_queued:
      oldestQueued === null
        ? null
        : {
            job_id: formatJobId(oldestQueued.job.jobId),
            task: oldestQueued.job.task,
            waited_ms: oldestQueued.waitedMs,
          },
    workers: diagnosis.workers.map(workerJson),
    stuck: diagnosis.stuck.map(stuckJson),
    unserved: diagnosis.unserved,
  });
}

function workerJson(worker: DiagnosedWorker): object {
  return {
    worker_id: worker.workerId,
    state: worker.state,
    processed: worker.processed,
    failed: worker.failed,
    cancelled: worker.cancelled,
    started_at: iso(worker.startedAtMs),
    last_heartbeat: iso(worker.lastHeartbeatMs),
    max_workers: worker.maxWorkers,
    tasks: worker.tasks,
    // Without the boot and namespace that tell processes apart.
    host: worker.host.split("/")[0] ?? worker.host,
    pid: worker.pid,
  };
}

function stuckJson({ jobId, task, workerId, lastHeartbeatMs }: Job): object {
  return {
    job_id: formatJobId(jobId),
    task,
    worker_id: workerId,
    last_heartbeat: lastHeartbeatMs === null ? null : iso(lastHeartbeatMs),
  };
}

function iso(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
