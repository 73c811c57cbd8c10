/** The engine: puts the parts together. What each of them does stands in its own file. */
import type { Job, NewJob } from "../job/job.js";
import type {
  CancelOutcome,
  Counts,
  JobPage,
  JobResult,
  Ledger,
  ListQuery,
  WorkerRecord,
} from "../ledger/ledger.js";
import { busyLoop } from "../runtime/busy-loop.js";
import { systemClock, type Clock } from "../runtime/clock.js";
import type { Logger } from "../runtime/logger.js";
import { systemProcesses, type Processes } from "../runtime/process-identity.js";
import { idSource, newWorkerId, systemRandom, type Random } from "../runtime/random.js";
import { withTasks, type RegisteredTask, type TaskRegistry } from "../task/registry.js";
import { Admission, type Recorder } from "./admission.js";
import type {
  Engine,
  EngineObserver,
  EngineSettings,
  HealthReport,
  RecordResult,
  RetryOptions,
  RetryResult,
  SubmitManyResult,
  SubmitRequest,
  SubmitResult,
  SyncOutcome,
  SyncRequest,
  WaitOptions,
} from "./api.js";
import { Batcher } from "./batcher.js";
import { diagnose, type Diagnosis } from "./diagnosis.js";
import { CautiousAverage } from "./cautious-average.js";
import { LedgerFaults } from "./ledger-faults.js";
import { Lifecycle, type LifecycleState } from "./lifecycle.js";
import { Maintenance } from "./maintenance.js";
import { Pool } from "./pool.js";
import { Readiness } from "./readiness.js";
import type { Runner } from "./runner/runner.js";
import { createTaskRunner } from "./runner/task-runner.js";
import type { StartStallGuard } from "./stall-guard.js";
import { SyncRequests } from "./sync-requests.js";
import { Waits } from "./waits.js";
import { WorkerSide } from "./worker-side.js";

export interface EngineOptions {
  readonly ledger: Ledger;
  readonly tasks: TaskRegistry;
  readonly settings: EngineSettings;
  readonly logger: Logger;
  /** Whether this process claims and runs jobs. Synchronous requests run here in any case. */
  readonly worker: boolean;
  /**
   * What this process's worker claims and runs besides, while nobody can submit it, run it now, or see
   * it in the list of tasks: whoever gives them records their jobs. Their names have a colon, which no
   * other task's can have. Default: none.
   */
  readonly ownTasks?: readonly RegisteredTask[];
  /** Default: threads for task files, this process for functions. */
  readonly runner?: Runner;
  /** Default: counts nothing. */
  readonly observer?: EngineObserver;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly processes?: Processes;
  /** Whether the event loop is at work most of the time. Default: measured. */
  readonly isBusy?: () => boolean;
  /** Beats for the worker while an inline handler holds up the event loop. Default: nobody does. */
  readonly stallGuard?: StartStallGuard | undefined;
}

type Parts = Required<Omit<EngineOptions, "stallGuard">> & Pick<EngineOptions, "stallGuard">;

/** The engine does not own the ledger: whoever opened it closes it, after `stop()`. */
export function createEngine(options: EngineOptions): Engine {
  const { settings, logger, clock = systemClock } = options;
  return new JobtableEngine({
    ...options,
    clock,
    random: options.random ?? systemRandom(),
    observer: options.observer ?? BLIND,
    ownTasks: options.ownTasks ?? [],
    processes: options.processes ?? systemProcesses(),
    isBusy: options.isBusy ?? busyLoop(clock),
    runner: options.runner ?? createTaskRunner({ maxThreads: settings.maxWorkers, clock, logger }),
  });
}

const BLIND: EngineObserver = {
  jobAccepted: () => undefined,
  jobRefused: () => undefined,
  jobStarted: () => undefined,
  jobEnded: () => undefined,
  requestRefused: () => undefined,
  requestEnded: () => undefined,
};

class JobtableEngine implements Engine {
  readonly tasks: TaskRegistry;
  readonly #options: Parts;
  readonly #pool: Pool;
  readonly #faults: LedgerFaults;
  readonly #looks: Batcher<string, Job | null>;
  readonly #admission: Admission;
  readonly #sync: SyncRequests;
  readonly #waits: Waits;
  readonly #maintenance: Maintenance;
  readonly #readiness: Readiness;
  readonly #worker: WorkerSide | null;
  readonly #workerId = newWorkerId();
  readonly #lifecycle: Lifecycle;

  constructor(options: Parts) {
    const { ledger, clock, logger, settings, random, processes } = options;
    this.#options = options;
    this.tasks = options.tasks;
    const runTimes = new CautiousAverage();
    const faults = new LedgerFaults(logger);
    const looks = new Batcher<string, Job | null>((ids) => ledger.get(ids), clock, {
      overlap: options.isBusy,
    });
    const shared = { ...options, faults, looks, runTimes };
    this.#faults = faults;
    this.#looks = looks;
    this.#pool = new Pool(settings.maxWorkers);
    this.#maintenance = new Maintenance({
      ...shared,
      workerId: options.worker ? this.#workerId : null,
      alive: () => this.#worker?.alive() ?? Promise.resolve(true),
    });
    const { retention, expiry } = this.#maintenance;
    this.#admission = new Admission({
      ...shared,
      newId: idSource(clock, random),
      beforeSubmit: () => {
        if (this.#lifecycle.state === "running") retention.submitting();
      },
      accepted: () => {
        expiry.queued();
      },
    });
    this.#sync = new SyncRequests({ ...shared, pool: this.#pool });
    this.#waits = new Waits({ ledger, looks, clock });
    this.#readiness = new Readiness(shared);
    this.#worker = options.worker
      ? new WorkerSide({
          ...shared,
          tasks: withTasks(options.tasks, options.ownTasks),
          // What runs in threads holds nothing up, and what is our own does not spin.
          mayStall: hasInline(options.tasks),
          workerId: this.#workerId,
          pool: this.#pool,
          identity: processes.self,
          jobEnded: () => {
            retention.ended();
          },
        })
      : null;
    this.#lifecycle = new Lifecycle({
      ...options,
      workerId: this.#workerId,
      workerSide: this.#worker,
      admission: this.#admission,
      sync: this.#sync,
      waits: this.#waits,
      maintenance: this.#maintenance,
    });
  }

  submit(request: SubmitRequest, into?: Recorder): Promise<SubmitResult> {
    return this.#admission.submit(request, into);
  }

  submitMany(requests: readonly SubmitRequest[], into?: Recorder): Promise<SubmitManyResult> {
    return this.#admission.submitMany(requests, into);
  }

  record(job: NewJob): Promise<RecordResult> {
    return this.#admission.record(job);
  }

  run(request: SyncRequest): Promise<SyncOutcome> {
    return this.#sync.run(request);
  }

  get(jobId: string): Promise<Job | null> {
    return this.#looks.add(jobId);
  }

  wait(jobId: string, options: WaitOptions): Promise<Job | null> {
    return this.#waits.wait(jobId, options);
  }

  result(jobId: string): Promise<JobResult | null> {
    return this.#options.ledger.result(jobId);
  }

  async cancel(jobId: string): Promise<CancelOutcome> {
    const [outcome] = await this.#options.ledger.cancel([jobId]);
    return outcome ?? { kind: "unknown" };
  }

  retry(jobId: string, options?: RetryOptions): Promise<RetryResult> {
    return this.#admission.retry(jobId, options);
  }

  list(query: ListQuery): Promise<JobPage> {
    return this.#options.ledger.list(query);
  }

  counts(): Promise<Counts> {
    return this.#options.ledger.counts();
  }

  workers(): Promise<WorkerRecord[]> {
    return this.#options.ledger.workers();
  }

  diagnose(): Promise<Diagnosis> {
    return diagnose({
      ...this.#options,
      dispatchFault: () => this.#faults.dispatchFault,
      maintenanceFault: () => this.#faults.maintenanceFault,
    });
  }

  health(): HealthReport {
    const { settings } = this.#options;
    const tally = this.#worker?.tally;
    return {
      state: healthState(this.#lifecycle.state, this.#worker !== null),
      workerId: this.#worker === null ? null : this.#workerId,
      maxWorkers: settings.maxWorkers,
      pollIntervalMs: settings.pollIntervalMs,
      busy: this.#pool.busy,
      waiting: this.#sync.waiting,
      processed: tally?.processed ?? 0,
      failed: tally?.failed ?? 0,
      cancelled: tally?.cancelled ?? 0,
      lastHeartbeatMs: this.#worker?.lastBeatMs ?? null,
      ledgerFault: this.#faults.fault,
    };
  }

  async ready(): Promise<{ readonly ready: boolean; readonly reason: string | null }> {
    const { state } = this.#lifecycle;
    if (state === "new" || state === "starting") return { ready: false, reason: "starting" };
    if (state !== "running") return { ready: false, reason: "shutting down" };
    const reason = await this.#readiness.fault();
    return { ready: reason === null, reason };
  }

  start(): Promise<void> {
    return this.#lifecycle.start();
  }

  stop(): Promise<void> {
    return this.#lifecycle.stop();
  }
}

function hasInline(tasks: TaskRegistry): boolean {
  return tasks.names.some((name) => tasks.get(name)?.isolation === "inline");
}

function healthState(state: LifecycleState, worker: boolean): HealthReport["state"] {
  if (state === "new") return worker ? "starting" : "idle";
  return state === "running" && !worker ? "idle" : state;
}
