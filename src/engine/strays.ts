/**
 * Jobs that the ledger gave to this worker without its hearing of it: the claim was recorded, and the
 * connection broke before the answer came. The worker lives, so nobody takes them for lost, and nobody
 * would run them until `job_timeout`. So after a claim that failed, the ledger is asked which running
 * jobs are this worker's, and those that it does not know are taken in as if they had just been
 * claimed, which they were: none of them has been started.
 *
 * A claim may even be recorded after its connection broke, when it had to wait for a lock. So the
 * ledger is asked again until that can't be any more. A job may also end while the ledger is asked,
 * over another connection: so each is looked at once more when the answer is there.
 */
import type { Job } from "../job/job.js";
import { MAX_PAGE } from "../job/limits.js";
import type { ClaimedJob, Ledger } from "../ledger/ledger.js";
import type { Clock } from "../runtime/clock.js";
import type { OwnedJobs } from "./owned-jobs.js";

/** No ledger lets a call wait for nearly as long; a proxy in between may, for some minutes. */
const DOUBT_MS = 300_000;
const LOOK_EVERY_MS = 5_000;

export interface StraysPorts {
  readonly workerId: string;
  readonly ledger: Ledger;
  readonly owned: OwnedJobs;
  readonly clock: Clock;
}

export class Strays {
  readonly #ports: StraysPorts;
  /** When the last claim failed, while it may still have been recorded; monotonic ms. */
  #failedMs: number | null = null;
  #lookedMs = -Infinity;

  constructor(ports: StraysPorts) {
    this.#ports = ports;
  }

  claimFailed(): void {
    this.#failedMs = this.#ports.clock.monotonicMs();
    this.#lookedMs = -Infinity;
  }

  /** Whether the ledger is to be asked now. */
  get due(): boolean {
    return (
      this.#failedMs !== null && this.#ports.clock.monotonicMs() - this.#lookedMs >= LOOK_EVERY_MS
    );
  }

  /**
   * Only while no claim is under way: what that one brings is known with its answer. Rejects with a
   * `LedgerError`; then it is due again when the next time has come.
   */
  async find(): Promise<ClaimedJob[]> {
    const { clock, ledger } = this.#ports;
    const beganMs = clock.monotonicMs();
    this.#lookedMs = beganMs;
    const found: ClaimedJob[] = [];
    for (const job of await this.#stillUnknown(await this.#unknown())) {
      const payloadJson = await ledger.payload(job.jobId);
      if (payloadJson !== null) found.push({ job, payloadJson });
    }
    if (this.#failedMs !== null && beganMs - this.#failedMs >= DOUBT_MS) this.#failedMs = null;
    return found;
  }

  /** Whoever ended meanwhile, was recorded as ended before this look; whoever is ours now, is known. */
  async #stillUnknown(jobs: readonly Job[]): Promise<Job[]> {
    if (jobs.length === 0) return [];
    const seen = await this.#ports.ledger.get(jobs.map(({ jobId }) => jobId));
    return seen.filter((now, index): now is Job => {
      const { status, workerId, attempt } = jobs[index] ?? {};
      if (now?.status !== status || now?.workerId !== workerId || now?.attempt !== attempt)
        return false;
      return now !== null && !this.#ports.owned.has(now);
    });
  }

  /** Running jobs are as many as there are slots, over all workers. */
  async #unknown(): Promise<Job[]> {
    const { ledger, workerId, owned } = this.#ports;
    const unknown: Job[] = [];
    let cursor: string | undefined;
    do {
      const page = await ledger.list({
        statuses: ["running"],
        limit: MAX_PAGE,
        ...(cursor === undefined ? {} : { cursor }),
      });
      for (const job of page.jobs)
        if (job.workerId === workerId && !owned.has(job)) unknown.push(job);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return unknown;
  }
}
