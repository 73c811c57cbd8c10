/** What the memory ledger holds of one job. */
import type { Job } from "../../job/job.js";

export interface Entry {
  /** The present record; replaced, never changed, so that a record handed out stays as it was. */
  job: Job;
  /** Null once it has left with the runner of the last allowed attempt, or the job has ended. */
  payloadJson: string | null;
  resultJson: string | null;
  /** Of the payload; null for a job without an idempotency key. */
  readonly fingerprint: string | null;
  /** Forgotten by retention; what still points here passes over it. */
  evicted: boolean;
}
