/**
 * One claimed job between getting a slot and being over: run, slot given back, end recorded, counted
 * and logged. The slot goes back as soon as the handler has gone; the end travels on with others
 * while the next job runs in it. The job is beaten for until its end is recorded.
 *
 * Tens of thousands of these begin and end in a second where jobs are tiny, so there is one object
 * for each and little around it.
 */
import type { End } from "../ledger/ledger.js";
import type { Clock } from "../runtime/clock.js";
import type { LogFields, Logger } from "../runtime/logger.js";
import type { Random } from "../runtime/random.js";
import type { RegisteredTask, TaskRegistry } from "../task/registry.js";
import type { ReportLevel } from "../task/reports.js";
import type { EngineObserver, EngineSettings } from "./api.js";
import { Attempt, runLimitMs, type AttemptPorts } from "./attempt.js";
import type { CautiousAverage } from "./cautious-average.js";
import { endLabel, endOf, type EndLabel } from "./ending.js";
import type { OwnedJob, OwnedJobNews, OwnedJobs } from "./owned-jobs.js";
import type { Slot } from "./pool.js";
import type { RunListener, RunOutcome } from "./runner/runner.js";
import type { SettleListener, SettleOutcome, Settler } from "./settler.js";
import type { Tally } from "./tally.js";

export interface JobRunPorts {
  readonly tasks: TaskRegistry;
  readonly settings: EngineSettings;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly observer: EngineObserver;
  readonly owned: OwnedJobs;
  readonly settler: Settler;
  readonly runTimes: CautiousAverage;
  readonly tally: Tally;
  readonly attempts: AttemptPorts;
  /** A handler has gone: the slot is to be used for the next one, or given back. */
  readonly freed: (slot: Slot) => void;
  /** A handler reported how far it is. */
  readonly progressed: () => void;
  /** Sends out what a job reported last, before its end is recorded. Never rejects. */
  readonly flushProgress: () => Promise<unknown>;
}

export class JobRun implements RunListener, SettleListener {
  readonly #ports: JobRunPorts;
  readonly #owned: OwnedJob;
  readonly #slot: Slot;
  readonly #over: (run: JobRun) => void;
  readonly #waitMs: number;
  readonly #attempt: Attempt;

  /** Starts it. @param over called once, when nothing more will happen to the job here. */
  constructor(
    ports: JobRunPorts,
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
    const { jobId, attempt, requestId } = job;
    // Of a plan not the phase is held to the setting, but each task that it runs (nested-run.ts).
    const setting = job.planId === null ? ports.settings.modelRunTimeoutMs : 0;
    const limitMs = runLimitMs(job.timeoutMs, task, setting);
    const request = { jobId, attempt, task, payloadJson, requestId };
    this.#attempt = new Attempt(ports.attempts, request, this, limitMs);
    // The runner has it now, and large payloads should not be held twice.
    owned.payloadJson = "";
    owned.holder = this;
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

  onLog(level: ReportLevel, message: string, fields: LogFields): void {
    const { jobId, task, attempt } = this.#owned.job;
    this.#ports.logger[level]({ ...fields, job_id: jobId, task, attempt }, message);
  }

  onOutcome(outcome: RunOutcome): void {
    this.#ports.freed(this.#slot);
    const { owned: jobs, runTimes, settler, random, flushProgress } = this.#ports;
    const { job, claim, freshProgressJson } = this.#owned;
    const { causes, limitMs, runMs } = this.#attempt;
    runTimes.add(runMs);
    jobs.ending(this.#owned);
    const { attempt, maxAttempts } = job;
    const end = endOf({ outcome, causes, attempt, maxAttempts, limitMs, unit: random.unit() });
    if (end === null) this.onSettled(null, "lost");
    else if (freshProgressJson === null) settler.settleFor(claim, end, this);
    else
      void flushProgress().then(() => {
        settler.settleFor(claim, end, this);
      });
  }

  onSettled(end: End | null, settled: SettleOutcome): void {
    const { owned } = this.#ports;
    if (settled === "unrecorded") owned.leave(this.#owned);
    else owned.remove(this.#owned);
    this.#over(this);
    if (end === null || settled === "lost" || settled === "unrecorded") this.#warn(settled);
    else {
      const label = endLabel(end, settled);
      reportEnd(this.#ports, this.#owned, end, label, this.#attempt.runMs, this.#waitMs);
    }
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
  { tally, observer, logger }: Pick<JobRunPorts, "tally" | "observer" | "logger">,
  { job }: OwnedJob,
  end: End,
  label: EndLabel,
  runMs: number,
  waitMs: number,
): void {
  tally.count(label);
  observer.jobEnded(job.task, label, runMs);
  const fields: Record<string, unknown> = {
    job_id: job.jobId,
    task: job.task,
    status: label,
    attempt: job.attempt,
    run_ms: Math.round(runMs),
    wait_ms: Math.round(waitMs),
  };
  if ("errorMessage" in end) fields["error"] = end.errorMessage;
  if (label === "released") logger.debug(fields, "job released");
  else logger.info(fields, "job ended");
}
