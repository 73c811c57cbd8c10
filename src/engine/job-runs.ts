/**
 * What happens to a claimed job between getting a slot and being over: run, slot given back, end
 * recorded, counted and logged. The slot goes back as soon as the handler has gone; its end travels
 * on with others while the next job runs. A job is beaten for until its end is recorded.
 */
import type { Clock } from "../runtime/clock.js";
import type { LogFields, Logger } from "../runtime/logger.js";
import type { Random } from "../runtime/random.js";
import type { TaskRegistry } from "../task/registry.js";
import type { End } from "../ledger/ledger.js";
import type { EngineObserver, EngineSettings } from "./api.js";
import { Attempt } from "./attempt.js";
import { endLabel, endOf } from "./ending.js";
import { InFlight } from "./in-flight.js";
import type { OwnedJob, OwnedJobs } from "./owned-jobs.js";
import type { Slot } from "./pool.js";
import type { RunListener, RunOutcome, Runner } from "./runner/runner.js";
import type { CautiousAverage } from "./cautious-average.js";
import type { Settler } from "./settler.js";
import type { Tally } from "./tally.js";

export interface JobRunsPorts {
  readonly tasks: TaskRegistry;
  readonly runner: Runner;
  readonly settings: EngineSettings;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly observer: EngineObserver;
  readonly owned: OwnedJobs;
  readonly settler: Settler;
  readonly runTimes: CautiousAverage;
  readonly tally: Tally;
  /** A handler reported how far it is. */
  readonly progressed: () => void;
  /** Sends out what a job reported last, before its end is recorded. Never rejects. */
  readonly flushProgress: () => Promise<unknown>;
}

export class JobRuns {
  readonly #ports: JobRunsPorts;
  readonly #attempts = new Set<Attempt>();
  /** Jobs from their start until their end is recorded or given up. */
  readonly #open = new InFlight();
  #shutdown = false;

  constructor(ports: JobRunsPorts) {
    this.#ports = ports;
  }

  /** Resolves when no job runs and every end is recorded or given up. */
  allOver(): Promise<void> {
    return this.#open.empty();
  }

  /** Tells all handlers that the worker shuts down. */
  shutDown(): void {
    this.#shutdown = true;
    for (const attempt of this.#attempts) attempt.stop("shutdown");
  }

  killAll(): void {
    for (const attempt of this.#attempts) attempt.kill();
  }

  /** Runs `owned` in `slot`, which is given back exactly once. */
  start(owned: OwnedJob, slot: Slot): void {
    const { tasks, runner, settings, clock, observer } = this.#ports;
    this.#open.enter();
    const { job } = owned;
    const task = tasks.get(job.task);
    if (task === undefined || owned.cancelled || owned.lost) {
      slot.release();
      void this.settleUnstarted(owned, unstartedEnd(owned)).finally(() => {
        this.#open.leave();
      });
      return;
    }
    const waitMs = this.#waitMs(owned);
    observer.jobStarted(job.task, waitMs);
    const attempt = new Attempt({
      runner,
      clock,
      request: {
        jobId: job.jobId,
        attempt: job.attempt,
        task,
        payloadJson: owned.payloadJson,
        requestId: job.requestId,
      },
      listener: this.#listener(owned),
      limitMs: job.timeoutMs ?? task.timeoutMs ?? settings.modelRunTimeoutMs,
      graceMs: settings.cancelGraceMs,
    });
    owned.payloadJson = "";
    owned.onNews = (news) => {
      attempt.stop(news);
    };
    this.#attempts.add(attempt);
    if (this.#shutdown) attempt.stop("shutdown");
    void attempt.outcome
      .then((outcome) => {
        this.#attempts.delete(attempt);
        slot.release();
        return this.#ended(owned, attempt, outcome, waitMs);
      })
      .finally(() => {
        this.#open.leave();
      });
  }

  /** Records the end of a claimed job that never ran. Never rejects. */
  async settleUnstarted(owned: OwnedJob, end: End): Promise<void> {
    const { owned: jobs, observer } = this.#ports;
    jobs.ending(owned);
    if (!owned.lost) {
      const settled = await this.#ports.settler.settle(owned.claim, end);
      if (settled === "recorded") {
        this.#ports.tally.count(end);
        if (end.event === "release") observer.jobEnded(owned.job.task, "released", 0);
        else this.#report(owned, end, 0, this.#waitMs(owned));
      }
    }
    jobs.remove(owned);
  }

  async #ended(owned: OwnedJob, attempt: Attempt, outcome: RunOutcome, waitMs: number) {
    const { owned: jobs, settler, tally, logger, random, runTimes } = this.#ports;
    const { runMs } = attempt;
    runTimes.add(runMs);
    jobs.ending(owned);
    const end = endOf({
      outcome,
      causes: attempt.causes,
      attempt: owned.job.attempt,
      maxAttempts: owned.job.maxAttempts,
      limitMs: attempt.limitMs,
      unit: random.unit(),
    });
    if (end !== null && owned.freshProgressJson !== null) await this.#ports.flushProgress();
    const settled = end === null ? "lost" : await settler.settle(owned.claim, end);
    jobs.remove(owned);
    if (end !== null && settled === "recorded") {
      tally.count(end);
      this.#report(owned, end, runMs, waitMs);
    } else
      logger.warn(
        { ...this.#fields(owned), run_ms: Math.round(runMs) },
        settled === "lost"
          ? "this run's outcome is dropped: the job is no longer this worker's"
          : "this job's end could not be recorded; stuck detection will find it",
      );
  }

  #report(owned: OwnedJob, end: End, runMs: number, waitMs: number): void {
    const label = endLabel(end);
    this.#ports.observer.jobEnded(owned.job.task, label, runMs);
    const error = "errorMessage" in end ? { error: end.errorMessage } : {};
    this.#ports.logger.info(
      {
        ...this.#fields(owned),
        status: label,
        run_ms: Math.round(runMs),
        wait_ms: Math.round(waitMs),
        ...error,
      },
      "job ended",
    );
  }

  #fields({ job }: OwnedJob): LogFields {
    return { job_id: job.jobId, task: job.task, attempt: job.attempt };
  }

  /** In the queue, by the ledger's clock, and then here, by ours. */
  #waitMs({ job, claimedMs }: OwnedJob): number {
    const dueMs = Math.max(job.createdAtMs, job.runAtMs);
    const queuedMs = Math.max(0, (job.startedAtMs ?? dueMs) - dueMs);
    return queuedMs + this.#ports.clock.monotonicMs() - claimedMs;
  }

  #listener(owned: OwnedJob): RunListener {
    return {
      onProgress: (progressJson) => {
        owned.freshProgressJson = progressJson;
        this.#ports.progressed();
      },
      onLog: (level, message, fields) => {
        this.#ports.logger[level]({ ...fields, ...this.#fields(owned) }, message);
      },
    };
  }
}

function unstartedEnd(owned: OwnedJob): End {
  if (owned.cancelled) return { event: "stop" };
  return { event: "fail", errorMessage: `UnknownTask: this worker has no task ${owned.job.task}` };
}
