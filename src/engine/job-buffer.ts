/**
 * Claimed jobs that wait in this process for a slot: a moment's work where runs are tiny. They are
 * owned like running ones: beaten for, and what the ledger says about them is heeded. None waits for
 * long: what gets no slot in time goes back to the queue, its attempt not counted, for whoever is free.
 */
import type { ClaimedJob } from "../ledger/ledger.js";
import type { Clock } from "../runtime/clock.js";
import { CautiousAverage } from "./cautious-average.js";
import { MAX_BUFFERED_MS } from "./claim-ahead.js";
import type { JobRuns } from "./job-runs.js";
import { OwnedJob, type Holder, type OwnedJobs } from "./owned-jobs.js";

export interface JobBufferPorts {
  readonly workerId: string;
  readonly clock: Clock;
  readonly runs: JobRuns;
  readonly owned: OwnedJobs;
  /** A job got no slot in time. */
  readonly onStale: () => void;
}

export class JobBuffer implements Holder {
  readonly #ports: JobBufferPorts;
  /** In the order of their claims. */
  readonly #jobs: OwnedJob[] = [];
  readonly #payloadChars = new CautiousAverage();
  #cancelTimer: (() => void) | null = null;

  constructor(ports: JobBufferPorts) {
    this.#ports = ports;
  }

  get size(): number {
    return this.#jobs.length;
  }

  /** Typical size of a payload; null before the first. */
  get typicalPayloadChars(): number | null {
    return this.#payloadChars.value;
  }

  add(claimed: ClaimedJob): void {
    const { workerId, owned: jobs, clock } = this.#ports;
    const owned = new OwnedJob(claimed, workerId, clock.monotonicMs());
    this.#payloadChars.add(claimed.payloadJson.length);
    jobs.add(owned);
    owned.holder = this;
    this.#jobs.push(owned);
    // A stray may have been asked to stop long ago.
    if (owned.job.cancelRequestedAtMs !== null) owned.learn("cancelled");
  }

  take(): OwnedJob | undefined {
    return this.#jobs.shift();
  }

  /** Whatever is learned of a job that waits ends its wait. */
  learned(_news: unknown, owned: OwnedJob): void {
    const index = this.#jobs.indexOf(owned);
    if (index < 0) return;
    this.#jobs.splice(index, 1);
    void this.#ports.runs.settleUnstarted(owned, { event: "stop" });
  }

  /** Once what was claimed had its chance of a slot: what stays waits for `MAX_BUFFERED_MS` at most. */
  watchTime(): void {
    const { clock, onStale } = this.#ports;
    const oldest = this.#jobs[0];
    if (oldest === undefined || this.#cancelTimer !== null) return;
    const leftMs = oldest.claimedMs + MAX_BUFFERED_MS - clock.monotonicMs();
    this.#cancelTimer = clock.timer(leftMs, () => {
      this.#cancelTimer = null;
      const latestMs = clock.monotonicMs() - MAX_BUFFERED_MS;
      const count = this.#jobs.findIndex(({ claimedMs }) => claimedMs > latestMs);
      const stale = this.#jobs.splice(0, count < 0 ? this.#jobs.length : count);
      if (stale.length > 0) onStale();
      void this.#release(stale);
      this.watchTime();
    });
  }

  /** Gives all jobs back to the queue. Never rejects. */
  async releaseAll(): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    await this.#release(this.#jobs.splice(0));
  }

  async #release(jobs: readonly OwnedJob[]): Promise<void> {
    await Promise.all(
      jobs.map((owned) => {
        const { payloadJson, job } = owned;
        const { startedAtMs } = job;
        const end = { event: "release", payloadJson, startedAtMs } as const;
        return this.#ports.runs.settleUnstarted(owned, end);
      }),
    );
  }
}
