/** The jobs that run here, as a set: starts them, tells them all to stop, knows when all are over. */
import type { End } from "../ledger/ledger.js";
import { endLabel } from "./ending.js";
import { InFlight } from "./in-flight.js";
import { JobRun, reportEnd, waitedMs, type JobRunPorts } from "./job-run.js";
import type { OwnedJob } from "./owned-jobs.js";
import type { Slot } from "./pool.js";

export class JobRuns {
  readonly #ports: JobRunPorts;
  readonly #runs = new Set<JobRun>();
  /** Jobs that are not over: they run, or their end is on its way to the ledger. */
  readonly #open = new InFlight();

  constructor(ports: JobRunPorts) {
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
    if (settled !== "lost" && settled !== "unrecorded") {
      const waitMs = waitedMs(owned, clock.monotonicMs());
      reportEnd(this.#ports, owned, end, endLabel(end, settled), 0, waitMs);
    }
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
