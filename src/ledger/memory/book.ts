/**
 * All that the memory ledger knows, and the one place where a record changes its state: `apply`
 * keeps the lines in step with the records, so that counts are sizes. Each job is in exactly one of
 * `waiting`, `running` and `finished`, by its status.
 */
import { transition, type Change } from "../../job/transition.js";
import type { WorkerRecord } from "../ledger.js";
import type { Entry } from "./entry.js";
import { FinishedLine } from "./finished-line.js";
import { JobIndex } from "./job-index.js";
import { WaitingLine } from "./waiting-line.js";

/** One verb's time, and what it has changed, to be told when all of it is in place. */
export interface Turn {
  readonly nowMs: number;
  readonly changedIds: string[];
  /** Whether a job may have become claimable. */
  work: boolean;
}

export class Book {
  readonly jobs = new JobIndex();
  readonly waiting = new WaitingLine();
  readonly running = new Set<Entry>();
  readonly finished = new FinishedLine();
  readonly workers = new Map<string, WorkerRecord>();

  /** Queued + running. */
  get depth(): number {
    return this.waiting.size + this.running.size;
  }

  /** Enters a job that was just admitted. */
  admit(entry: Entry, turn: Turn): void {
    this.jobs.add(entry);
    this.#file(entry, turn);
  }

  /** False, and nothing happens, when the job may not make that move now. */
  apply(entry: Entry, change: Change, turn: Turn): boolean {
    const after = transition(entry.job, change, turn.nowMs);
    if (after === null) return false;
    // Before the record changes: the lines are ordered by it.
    this.waiting.remove(entry);
    this.running.delete(entry);
    entry.job = after;
    this.#file(entry, turn);
    return true;
  }

  #file(entry: Entry, turn: Turn): void {
    const { status } = entry.job;
    if (status === "queued") {
      this.waiting.add(entry, turn.nowMs);
      turn.work = true;
    } else if (status === "running") {
      this.running.add(entry);
    } else {
      entry.payloadJson = null;
      this.finished.add(entry);
    }
    turn.changedIds.push(entry.job.jobId);
  }
}
