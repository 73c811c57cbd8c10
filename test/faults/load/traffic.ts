/** All that clients do during a run: they submit, over HTTP and from the shell, and wait. */
import { MAX_ATTEMPTS } from "../../../src/job/limits.js";
import type { SeededRandom } from "../../sim/seeded-random.js";
import type { Fleet } from "../processes/fleet.js";
import type { Limits } from "../limits.js";
import type { Shape } from "../scenario.js";
import { Client } from "./client.js";
import { planJob, type JobPlan } from "./job-plan.js";
import { Shell } from "./shell.js";
import { Submitters, type Accepted, type SubmitCounts } from "./submitters.js";
import { Waiters, type EmptyPoll, type Sighting } from "./waiters.js";

export interface TrafficParts {
  readonly fleet: Fleet;
  readonly random: SeededRandom;
  readonly shape: Shape;
  readonly limits: Limits;
  readonly options: {
    readonly jobs: number;
    readonly waiters: number;
    readonly shellJobs: number;
  };
}

/** Polls are long enough that news which got lost come too late to be overlooked (see limits.ts). */
const POLL_MS = [60_000, 300_000] as const;

export interface WaitCounts {
  /** Jobs that someone waited for. */
  readonly jobs: number;
  readonly polls: number;
  /** Polls that got no answer or a 503, and were asked again. */
  readonly repeated: number;
  readonly mostAtOnce: number;
}

export class Traffic {
  readonly accepted = new Map<string, Accepted>();
  readonly #client = new Client();
  readonly #abort = new AbortController();
  readonly #submitters: Submitters;
  readonly #waiters: Waiters;
  readonly #shell: Shell;
  readonly #shellPlans: readonly JobPlan[];
  readonly #waiting: Promise<void>;
  #allAccepted = false;

  constructor({ fleet, random, shape, limits, options }: TrafficParts) {
    const { jobs, waiters, shellJobs } = options;
    const plans = Array.from({ length: jobs }, (_, n) => planJob(n, random, shape.runMs));
    const { signal } = this.#abort;
    const common = { client: this.#client, urls: fleet.urls, random, limits, signal };
    this.#submitters = new Submitters({
      ...common,
      plans: plans.slice(shellJobs),
      onAccepted: (accepted) => {
        this.#accept(accepted);
        this.#waiters.offer(accepted);
      },
    });
    this.#shellPlans = plans.slice(0, shellJobs).map(certain);
    this.#shell = new Shell(fleet, shape.bound);
    this.#waiters = new Waiters({ ...common, count: waiters, pollMs: POLL_MS });
    this.#waiting = this.#waiters.run();
  }

  get allAccepted(): boolean {
    return this.#allAccepted;
  }

  get submitCounts(): SubmitCounts & { readonly unreachable: number } {
    return { ...this.#submitters.counts, unreachable: this.#shell.unreachable };
  }

  get waitCounts(): WaitCounts {
    const { sightings, polls, repeated, mostAtOnce } = this.#waiters;
    return { jobs: sightings.length, polls, repeated, mostAtOnce };
  }

  get sightings(): readonly Sighting[] {
    return this.#waiters.sightings;
  }

  get emptyPolls(): readonly EmptyPoll[] {
    return this.#waiters.emptyPolls;
  }

  get faults(): readonly string[] {
    return [...this.#submitters.faults, ...this.#shell.faults, ...this.#waiters.faults];
  }

  /** Resolves when every job was accepted. */
  async run(): Promise<void> {
    const { signal } = this.#abort;
    await Promise.all([
      this.#submitters.run(),
      this.#shell.run(
        this.#shellPlans,
        () => signal.aborted,
        (accepted) => {
          this.#accept(accepted);
        },
      ),
    ]);
    this.#allAccepted = true;
    this.#waiters.close();
  }

  /** Resolves when every wait is over. */
  async finish(): Promise<void> {
    await this.#waiting;
    this.#client.close();
  }

  /** Nobody submits or waits any longer; open calls break. */
  abort(): void {
    this.#abort.abort();
    this.#waiters.close();
    this.#client.close();
  }

  #accept(accepted: Accepted): void {
    const { jobId } = accepted;
    const other = this.accepted.get(jobId);
    if (other !== undefined)
      throw new Error(
        `${jobId} was given to jobs ${String(other.plan.part.n)} and ${String(accepted.plan.part.n)}`,
      );
    this.accepted.set(jobId, accepted);
  }
}

/** Who waits in the shell expects a result. */
function certain(plan: JobPlan): JobPlan {
  return {
    ...plan,
    part: { ...plan.part, fails: 0 },
    delayMs: 0,
    maxAttempts: MAX_ATTEMPTS,
    cancels: false,
  };
}
