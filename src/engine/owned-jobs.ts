/**
 * The jobs that this worker owns at present, from the claim until their end is recorded. Knows for
 * each whether a user asked to cancel it and whether the claim was lost, and tells whoever holds it.
 *
 * The news comes in two ways: the ledger's hint on that job, after which it is looked at, and the
 * heartbeat's answer, which is the fallback. Both speak of the claim that was asked about: a job that
 * was lost and claimed again by this same worker is another `OwnedJob`.
 */
import type { Claim, Job } from "../job/job.js";
import { owns } from "../job/transition.js";
import type {
  ClaimedJob,
  HeartbeatAnswer,
  JobBeat,
  Ledger,
  Unsubscribe,
} from "../ledger/ledger.js";
import type { Batcher } from "./batcher.js";

export type OwnedJobNews = "cancelled" | "lost";

/** Whoever must know what the ledger says about a job. Called at most once for each kind of news. */
export interface Holder {
  learned(news: OwnedJobNews, owned: OwnedJob): void;
}

/** Each is a fault of the ledger's; by then the oldest were found stuck. */
const MOST_UNRECORDED = 10_000;

export class OwnedJob {
  readonly job: Job;
  readonly claim: Claim;
  /** As recorded; empty once the runner has it. */
  payloadJson: string;
  /** Monotonic ms. */
  readonly claimedMs: number;
  cancelled = false;
  lost = false;
  /** The buffer, later the run. */
  holder: Holder | null = null;
  /** The newest report that no beat has carried yet. */
  freshProgressJson: string | null = null;
  unwatch: Unsubscribe | null = null;

  constructor({ job, payloadJson }: ClaimedJob, workerId: string, claimedMs: number) {
    this.job = job;
    this.claim = { jobId: job.jobId, workerId, attempt: job.attempt };
    this.payloadJson = payloadJson;
    this.claimedMs = claimedMs;
  }

  learn(news: OwnedJobNews): void {
    if (this[news]) return;
    this[news] = true;
    if (news === "lost") this.stopWatching();
    this.holder?.learned(news, this);
  }

  stopWatching(): void {
    this.unwatch?.();
    this.unwatch = null;
  }
}

export class OwnedJobs {
  readonly #ledger: Ledger;
  readonly #looks: Batcher<string, Job | null>;
  /** By job id. */
  readonly #owned = new Map<string, OwnedJob>();
  /** Attempts that have run, and whose end the ledger would not take, by job id. */
  readonly #unrecorded = new Map<string, number>();
  /** Called after each removal. */
  onRemoved: (() => void) | null = null;

  /** @param looks batches `ledger.get`. */
  constructor(ledger: Ledger, looks: Batcher<string, Job | null>) {
    this.#ledger = ledger;
    this.#looks = looks;
  }

  get size(): number {
    return this.#owned.size;
  }

  /** Whether this attempt of the job is one of ours, as far as we know, or has been. */
  has({ jobId, attempt }: Pick<Job, "jobId" | "attempt">): boolean {
    return (
      this.#owned.get(jobId)?.claim.attempt === attempt || this.#unrecorded.get(jobId) === attempt
    );
  }

  add(owned: OwnedJob): void {
    // Claimed again by ourselves: then the claim that we believed in had been lost.
    this.#owned.get(owned.claim.jobId)?.learn("lost");
    this.#owned.set(owned.claim.jobId, owned);
    const hinted = (): void => void this.#look(owned);
    owned.unwatch = this.#ledger.watch(owned.claim.jobId, hinted, owned.job);
  }

  /** Its handler has gone: news can't change its end any more. It is beaten for until `remove`. */
  ending(owned: OwnedJob): void {
    owned.stopWatching();
    owned.holder = null;
  }

  remove(owned: OwnedJob): void {
    this.ending(owned);
    if (this.#owned.get(owned.claim.jobId) === owned) this.#owned.delete(owned.claim.jobId);
    this.onRemoved?.();
  }

  /** Removes one whose end could not be recorded: it has run, and is never to be taken for new. */
  leave(owned: OwnedJob): void {
    const { jobId, attempt } = owned.claim;
    this.#unrecorded.set(jobId, attempt);
    const [oldest] = this.#unrecorded.keys();
    if (this.#unrecorded.size > MOST_UNRECORDED && oldest !== undefined)
      this.#unrecorded.delete(oldest);
    this.remove(owned);
  }

  /** What the next beat says, and of whom; lost ones are not beaten for. */
  beats(): { readonly beats: JobBeat[]; readonly of: ReadonlyMap<string, OwnedJob> } {
    const of = new Map<string, OwnedJob>();
    const beats: JobBeat[] = [];
    for (const owned of this.#owned.values()) {
      if (owned.lost) continue;
      const { jobId, attempt } = owned.claim;
      const progressJson = owned.freshProgressJson;
      owned.freshProgressJson = null;
      of.set(jobId, owned);
      beats.push(progressJson === null ? { jobId, attempt } : { jobId, attempt, progressJson });
    }
    return { beats, of };
  }

  /** @param of as `beats` gave it. */
  answered(answer: HeartbeatAnswer, of: ReadonlyMap<string, OwnedJob>): void {
    for (const jobId of answer.cancelRequested) of.get(jobId)?.learn("cancelled");
    for (const jobId of answer.lost) of.get(jobId)?.learn("lost");
  }

  /** The beat did not arrive: its reports go with the next one, unless there are newer ones. */
  unanswered(beats: readonly JobBeat[], of: ReadonlyMap<string, OwnedJob>): void {
    for (const { jobId, progressJson } of beats) {
      const owned = of.get(jobId);
      if (owned !== undefined && progressJson !== undefined)
        owned.freshProgressJson ??= progressJson;
    }
  }

  async #look(owned: OwnedJob): Promise<void> {
    let seen: Job | null;
    try {
      seen = await this.#looks.add(owned.claim.jobId);
    } catch {
      // The heartbeat's answer says the same, and reports the fault.
      return;
    }
    if (owned.unwatch === null) return;
    if (seen === null || !owns(seen, owned.claim)) owned.learn("lost");
    else if (seen.cancelRequestedAtMs !== null) owned.learn("cancelled");
  }
}
