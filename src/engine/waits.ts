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
import type { Batcher, Waiting } from "./batcher.js";

/** After a look that failed: the ledger's hint after the gap comes first, as a rule. */
const LOOK_AGAIN_MS = 1_000;

interface WaitsPorts {
  readonly ledger: Ledger;
  readonly looks: Pick<Batcher<string, Job | null>, "push">;
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
    return new Promise((answer, fail) => {
      const wait = new Wait(jobId, options, { ...this.#ports, open: this.#open, answer, fail });
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

interface WaitPorts extends WaitsPorts {
  /** The waits under way. */
  readonly open: Set<Wait>;
  readonly answer: (job: Job | null) => void;
  readonly fail: (error: unknown) => void;
}

/** It is what waits for its looks, too: the batcher hands `resolve` what it finds of the job, or `reject` why not. */
class Wait implements Waiting<string, Job | null> {
  readonly item: string;
  readonly #options: WaitOptions;
  readonly #ports: WaitPorts;
  #seen: Job | null = null;
  #entryStatus: Status | null = null;
  #looking = false;
  #lookAgain = false;
  #expired = false;
  #over = false;
  #unwatch: Unsubscribe | null = null;
  #cancelTimer: (() => void) | null = null;
  #cancelRetry: (() => void) | null = null;

  constructor(jobId: string, options: WaitOptions, ports: WaitPorts) {
    this.item = jobId;
    this.#options = options;
    this.#ports = ports;
  }

  begin(): void {
    const { ledger, clock, open } = this.#ports;
    const { timeoutMs, signal } = this.#options;
    open.add(this);
    this.#unwatch = ledger.watch(this.item, this.#look);
    this.#cancelTimer = clock.timer(timeoutMs, this.expire);
    if (signal?.aborted === true) this.expire();
    else signal?.addEventListener("abort", this.expire);
    this.#look();
  }

  /** Answers with the last look; with the first one, when that is still under way. */
  readonly expire = (): void => {
    this.#expired = true;
    if (this.#entryStatus !== null) this.#end(this.#seen);
  };

  /** A look that was found. */
  resolve(job: Job | null): void {
    this.#looking = false;
    if (this.#over) return;
    if (job === null) {
      this.#end(this.#seen);
      return;
    }
    this.#seen = job;
    this.#entryStatus ??= job.status;
    const changed = this.#options.until === "change" && job.status !== this.#entryStatus;
    if (changed || isTerminal(job.status) || this.#expired) this.#end(job);
    else if (this.#lookAgain) this.#look();
  }

  /** A look that failed. */
  reject(error: unknown): void {
    this.#looking = false;
    if (this.#over) return;
    if (this.#entryStatus === null) {
      this.#cleanUp();
      this.#ports.fail(error);
      return;
    }
    this.#cancelRetry?.();
    this.#cancelRetry = this.#ports.clock.timer(LOOK_AGAIN_MS, this.#look);
    if (this.#lookAgain) this.#look();
  }

  readonly #look = (): void => {
    this.#lookAgain = this.#looking;
    if (this.#looking) return;
    this.#looking = true;
    this.#ports.looks.push(this);
  };

  #end(job: Job | null): void {
    if (this.#over) return;
    this.#cleanUp();
    this.#ports.answer(job);
  }

  #cleanUp(): void {
    this.#over = true;
    this.#unwatch?.();
    this.#cancelTimer?.();
    this.#cancelRetry?.();
    this.#options.signal?.removeEventListener("abort", this.expire);
    this.#ports.open.delete(this);
  }
}
