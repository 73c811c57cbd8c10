/**
 * One claimed job between getting a slot and being over: run, slot given back, end recorded, counted
 * and logged. The slot goes back as soon as the handler has gone; the end travels on with others
 * while the next job runs in it. The job is beaten for until its end is recorded.
 *
 * Tens of thousands of these begin and end in a second where jobs are tiny, so there is one object
 * for each and little around it.
 */
import type { End } from "../ledger/ledger.js";
import type { LogFields } from "../runtime/logger.js";
import type { RegisteredTask } from "../task/registry.js";
import { Attempt } from "./attempt.js";
import { endLabel, endOf } from "./ending.js";
import type { JobRunsPorts } from "./job-runs.js";
import type { OwnedJob, OwnedJobNews } from "./owned-jobs.js";
import type { Slot } from "./pool.js";
import type { RunListener, RunOutcome } from "./runner/runner.js";
import type { SettleOutcome } from "./settler.js";

export class JobRun implements RunListener {
  readonly #ports: JobRunsPorts;
  readonly #owned: OwnedJob;
  readonly #slot: Slot;
  readonly #over: (run: JobRun) => void;
  readonly #waitMs: number;
  readonly #attempt: Attempt;

  /** Starts it. @param over called once, when nothing more will happen to the job here. */
  constructor(
    ports: JobRunsPorts,
    owned: OwnedJob,
    task: RegisteredTask,
    slot: Slot,
    over: (run: JobRun) => void,
  ) {
    this.#ports = ports;
    this.#owned = owned;
    this.#slot = slot;
    this.#over = over;
    this.#waitMs = waitedMs(owned, ports.clock.monotonicMs());
    const { job, payloadJson } = owned;
    ports.observer.jobStarted(job.task, this.#waitMs);
    this.#attempt = new Attempt({
      runner: ports.runner,
      clock: ports.clock,
      request: {
        jobId: job.jobId,
        attempt: job.attempt,
        task,
        payloadJson,
        requestId: job.requestId,
      },
      listener: this,
      limitMs: job.timeoutMs ?? task.timeoutMs ?? ports.settings.modelRunTimeoutMs,
      graceMs: ports.settings.cancelGraceMs,
    });
    // The runner has it now, and large payloads should not be held twice.
    owned.payloadJson = "";
    owned.holder = this;
    void this.#attempt.outcome.then((outcome) => this.#ended(outcome));
  }

  /** From the ledger: the job was cancelled, or is no longer this worker's. */
  learned(news: OwnedJobNews): void {
    this.#attempt.stop(news);
  }

  shutDown(): void {
    this.#attempt.stop("shutdown");
  }

  kill(): void {
    this.#attempt.kill();
  }

  onProgress(progressJson: string): void {
    this.#owned.freshProgressJson = progressJson;
    this.#ports.progressed();
  }

  onLog(level: Parameters<RunListener["onLog"]>[0], message: string, fields: LogFields): void {
    const { jobId, task, attempt } = this.#owned.job;
    this.#ports.logger[level]({ ...fields, job_id: jobId, task, attempt }, message);
  }

  #ended(outcome: RunOutcome): void | Promise<void> {
    this.#slot.release();
    const { owned: jobs, runTimes, settler, random, flushProgress } = this.#ports;
    const { job, claim, freshProgressJson } = this.#owned;
    const { causes, limitMs, runMs } = this.#attempt;
    runTimes.add(runMs);
    jobs.ending(this.#owned);
    const { attempt, maxAttempts } = job;
    const end = endOf({ outcome, causes, attempt, maxAttempts, limitMs, unit: random.unit() });
    if (end === null) {
      this.#settled(null, "lost");
      return;
    }
    const settling =
      freshProgressJson === null
        ? settler.settle(claim, end)
        : flushProgress().then(() => settler.settle(claim, end));
    return settling.then((settled) => {
      this.#settled(end, settled);
    });
  }

  #settled(end: End | null, settled: SettleOutcome): void {
    this.#ports.owned.remove(this.#owned);
    if (end !== null && settled === "recorded")
      reportEnd(this.#ports, this.#owned, end, this.#attempt.runMs, this.#waitMs);
    else this.#warn(settled);
    this.#over(this);
  }

  #warn(settled: SettleOutcome): void {
    const { jobId, task, attempt } = this.#owned.job;
    this.#ports.logger.warn(
      { job_id: jobId, task, attempt, run_ms: Math.round(this.#attempt.runMs) },
      settled === "lost"
        ? "this run's outcome is dropped: the job is no longer this worker's"
        : "this job's end could not be recorded; stuck detection will find it",
    );
  }
}

/** How long it waited: in the queue, by the ledger's clock, and then here, by ours. */
export function waitedMs({ job, claimedMs }: OwnedJob, nowMs: number): number {
  const dueMs = Math.max(job.createdAtMs, job.runAtMs);
  const queuedMs = Math.max(0, (job.startedAtMs ?? dueMs) - dueMs);
  return queuedMs + nowMs - claimedMs;
}

/** Counts and logs an end that was recorded. */
export function reportEnd(
  { tally, observer, logger }: Pick<JobRunsPorts, "tally" | "observer" | "logger">,
  { job }: OwnedJob,
  end: End,
  runMs: number,
  waitMs: number,
): void {
  tally.count(end);
  const status = endLabel(end);
  observer.jobEnded(job.task, status, runMs);
  const fields: Record<string, unknown> = {
    job_id: job.jobId,
    task: job.task,
    status,
    attempt: job.attempt,
    run_ms: Math.round(runMs),
    wait_ms: Math.round(waitMs),
  };
  if ("errorMessage" in end) fields["error"] = end.errorMessage;
  if (end.event === "release") logger.debug(fields, "job released");
  else logger.info(fields, "job ended");
}
