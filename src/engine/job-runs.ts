/** The jobs that run here, as a set: starts them, tells them all to stop, knows when all are over. */
import type { End } from "../ledger/ledger.js";
import type { Clock } from "../runtime/clock.js";
import type { Logger } from "../runtime/logger.js";
import type { Random } from "../runtime/random.js";
import type { TaskRegistry } from "../task/registry.js";
import type { EngineObserver, EngineSettings } from "./api.js";
import type { CautiousAverage } from "./cautious-average.js";
import { InFlight } from "./in-flight.js";
import { JobRun, reportEnd, waitedMs } from "./job-run.js";
import type { OwnedJob, OwnedJobs } from "./owned-jobs.js";
import type { Slot } from "./pool.js";
import type { Runner } from "./runner/runner.js";
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
  readonly #runs = new Set<JobRun>();
  /** Jobs that are not over: they run, or their end is on its way to the ledger. */
  readonly #open = new InFlight();

  constructor(ports: JobRunsPorts) {
    this.#ports = ports;
  }

  /** Resolves when no job runs and every end is recorded or given up. */
  allOver(): Promise<void> {
    return this.#open.empty();
  }

  /** Tells all handlers that the worker shuts down. */
  shutDown(): void {
    for (const run of this.#runs) run.shutDown();
  }

  killAll(): void {
    for (const run of this.#runs) run.kill();
  }

  /** Runs `owned` in `slot`, which is given back exactly once. */
  start(owned: OwnedJob, slot: Slot): void {
    const task = this.#ports.tasks.get(owned.job.task);
    if (task === undefined) {
      slot.release();
      void this.settleUnstarted(owned, unknownTask(owned));
      return;
    }
    this.#open.enter();
    this.#runs.add(new JobRun(this.#ports, owned, task, slot, this.#over));
  }

  /** Records the end of a claimed job that never ran. Never rejects. */
  async settleUnstarted(owned: OwnedJob, end: End): Promise<void> {
    const { owned: jobs, settler, clock } = this.#ports;
    this.#open.enter();
    jobs.ending(owned);
    const settled = owned.lost ? "lost" : await settler.settle(owned.claim, end);
    jobs.remove(owned);
    if (settled === "recorded")
      reportEnd(this.#ports, owned, end, 0, waitedMs(owned, clock.monotonicMs()));
    this.#open.leave();
  }

  readonly #over = (run: JobRun): void => {
    this.#runs.delete(run);
    this.#open.leave();
  };
}

/** Only tasks of this worker are claimed, so this is a ledger that answered beyond the question. */
function unknownTask({ job }: OwnedJob): End {
  return { event: "fail", errorMessage: `UnknownTask: this worker has no task ${job.task}` };
}
