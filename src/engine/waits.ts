/**
 * Long polls: each waits for a change of one job without asking for it again and again. It subscribes
 * first and looks then, so that no change falls between; after each hint it looks again. Looks of many
 * waiters share calls. Whatever ends a wait (a change, its time, the caller's signal, the engine's
 * stop), its subscription, timers and listeners go with it, and ten thousand of them are cheap.
 */
import type { Job } from "../job/job.js";
import { isTerminal, type Status } from "../job/state.js";
import type { Ledger, Unsubscribe } from "../ledger/ledger.js";
import type { Clock } from "../runtime/clock.js";
import type { WaitOptions } from "./api.js";
import type { Batcher } from "./batcher.js";

/** After a look that failed: the ledger's hint after the gap comes first, as a rule. */
const LOOK_AGAIN_MS = 1_000;

interface WaitsPorts {
  readonly ledger: Ledger;
  readonly looks: Batcher<string, Job | null>;
  readonly clock: Clock;
}

export class Waits {
  readonly #ports: WaitsPorts;
  readonly #open = new Set<Wait>();
  #closed = false;

  constructor(ports: WaitsPorts) {
    this.#ports = ports;
  }

  /**
   * @returns the last look: null for an id that was unknown at entry, and the last snapshot seen for
   * a job that was forgotten meanwhile. Rejects with a `LedgerError` when the first look fails.
   */
  wait(jobId: string, options: WaitOptions): Promise<Job | null> {
    return new Promise((resolve, reject) => {
      const wait = new Wait(this.#ports, jobId, options, {
        resolve,
        reject,
        over: () => this.#open.delete(wait),
      });
      this.#open.add(wait);
      wait.begin();
      if (this.#closed) wait.expire();
    });
  }

  /** Answers all waits with their last look, and later ones with their first. */
  close(): void {
    this.#closed = true;
    for (const wait of this.#open) wait.expire();
  }
}

interface Waiter {
  resolve(job: Job | null): void;
  reject(error: unknown): void;
  over(): void;
}

class Wait {
  readonly #ports: WaitsPorts;
  readonly #jobId: string;
  readonly #options: WaitOptions;
  readonly #waiter: Waiter;
  #seen: Job | null = null;
  #entryStatus: Status | null = null;
  #looking = false;
  #lookAgain = false;
  #expired = false;
  #over = false;
  #unwatch: Unsubscribe | null = null;
  #cancelTimer: (() => void) | null = null;
  #cancelRetry: (() => void) | null = null;

  constructor(ports: WaitsPorts, jobId: string, options: WaitOptions, waiter: Waiter) {
    this.#ports = ports;
    this.#jobId = jobId;
    this.#options = options;
    this.#waiter = waiter;
  }

  begin(): void {
    const { ledger, clock } = this.#ports;
    const { timeoutMs, signal } = this.#options;
    this.#unwatch = ledger.watch(this.#jobId, this.#hinted);
    this.#cancelTimer = clock.timer(timeoutMs, this.expire);
    if (signal?.aborted === true) this.expire();
    else signal?.addEventListener("abort", this.expire);
    void this.#look();
  }

  /** Answers with the last look; with the first one, when that is still under way. */
  readonly expire = (): void => {
    this.#expired = true;
    if (this.#entryStatus !== null) this.#end(this.#seen);
  };

  readonly #hinted = (): void => {
    void this.#look();
  };

  async #look(): Promise<void> {
    if (this.#looking) {
      this.#lookAgain = true;
      return;
    }
    this.#looking = true;
    do {
      this.#lookAgain = false;
      try {
        this.#saw(await this.#ports.looks.add(this.#jobId));
      } catch (error) {
        this.#lookFailed(error);
      }
    } while (this.#mustLookAgain());
    this.#looking = false;
  }

  #mustLookAgain(): boolean {
    return this.#lookAgain && !this.#over;
  }

  #saw(job: Job | null): void {
    if (this.#over) return;
    if (job === null) {
      this.#end(this.#seen);
      return;
    }
    this.#seen = job;
    this.#entryStatus ??= job.status;
    const changed = this.#options.until === "change" && job.status !== this.#entryStatus;
    if (changed || isTerminal(job.status) || this.#expired) this.#end(job);
  }

  #lookFailed(error: unknown): void {
    if (this.#over) return;
    if (this.#entryStatus === null) {
      this.#cleanUp();
      this.#waiter.reject(error);
      return;
    }
    this.#cancelRetry?.();
    this.#cancelRetry = this.#ports.clock.timer(LOOK_AGAIN_MS, this.#hinted);
  }

  #end(job: Job | null): void {
    if (this.#over) return;
    this.#cleanUp();
    this.#waiter.resolve(job);
  }

  #cleanUp(): void {
    this.#over = true;
    this.#unwatch?.();
    this.#cancelTimer?.();
    this.#cancelRetry?.();
    this.#options.signal?.removeEventListener("abort", this.expire);
    this.#waiter.over();
  }
}
