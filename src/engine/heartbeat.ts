/**
 * Tells the ledger that this worker and its jobs are alive: one statement per beat for all of them,
 * with what the handlers reported. The answer names the jobs that were cancelled or lost.
 *
 * One beat is under way at a time; who asks meanwhile gets the next one. Beats go on until `stop`,
 * which is called after the last job has ended. A failed beat is tried again soon, and changes
 * nothing: only an answer can tell that a job was lost. One that is not answered when the next is due
 * is not waited for, since its connection may be dead and another one may not be; what a later answer
 * says is dropped, as the next one says the same. Such a beat may only be slow: it is two of them in a
 * row that make a fault.
 */
import { LedgerError } from "../job/errors.js";
import type { HeartbeatAnswer, JobBeat, Ledger, WorkerBeat } from "../ledger/ledger.js";
import type { Clock } from "../runtime/clock.js";
import { within } from "../runtime/within.js";
import type { LedgerFaults } from "./ledger-faults.js";
import type { OwnedJobs } from "./owned-jobs.js";

/** A third of the shortest timeout: two beats may be lost before anyone takes this worker for lost. */
const BEATS_PER_TIMEOUT = 3;
const SHORTEST_INTERVAL_MS = 250;
const LONGEST_INTERVAL_MS = 10_000;
/** How long a report may wait for its beat. */
const PROGRESS_WITHIN_MS = 500;
/** After a failed beat: soon enough that a short break costs no job its owner. */
const RETRY_AFTER_MS = 1_000;
/** Beats that hang, each with a connection. The one that follows takes its time: then all do. */
const MOST_HANGING = 2;

export interface HeartbeatPorts {
  readonly ledger: Pick<Ledger, "heartbeat">;
  readonly clock: Clock;
  readonly faults: LedgerFaults;
  readonly owned: OwnedJobs;
  readonly workerTimeoutMs: number;
  readonly jobTimeoutMs: number;
  /** The worker's row as it is now. */
  readonly describe: () => WorkerBeat;
}

export class Heartbeat {
  readonly intervalMs: number;
  readonly #ports: HeartbeatPorts;
  #beating: Promise<boolean> | null = null;
  #next: Promise<boolean> | null = null;
  /** Calls without an answer, also those that are not waited for any more. */
  readonly #open = new Set<Promise<HeartbeatAnswer>>();
  #cancelTimer: (() => void) | null = null;
  #dueMs = Infinity;
  #lastWallMs: number | null = null;
  /** The last beat was not answered in time, nor has any been since. */
  #isLate = false;
  #started = false;
  #stopped = false;

  constructor(ports: HeartbeatPorts) {
    this.#ports = ports;
    this.intervalMs = Math.min(
      Math.max(
        Math.min(ports.workerTimeoutMs, ports.jobTimeoutMs) / BEATS_PER_TIMEOUT,
        SHORTEST_INTERVAL_MS,
      ),
      LONGEST_INTERVAL_MS,
    );
  }

  /** When the ledger last took a beat: wall time in ms, or null before the first. */
  get lastBeatMs(): number | null {
    return this.#lastWallMs;
  }

  /** Beats once and then on and on. Rejects with what the first beat was rejected with. */
  async start(): Promise<void> {
    await this.#send(null);
    if (this.#isStopped()) return;
    this.#started = true;
    this.#beatWithin(this.intervalMs);
  }

  /** Beats now. Resolves to whether the ledger took it; never rejects. After `stop` it does nothing: the worker's row is gone for good. */
  beat(): Promise<boolean> {
    if (this.#stopped) return Promise.resolve(false);
    if (this.#beating === null) return this.#begin();
    this.#next ??= this.#beating.then(() => {
      this.#next = null;
      return this.#stopped ? false : this.#begin();
    });
    return this.#next;
  }

  /** Something changed that should be known soon. */
  progressed(): void {
    this.#beatWithin(PROGRESS_WITHIN_MS);
  }

  /** Ends the beats and waits for all under way: one that arrives after `leave` would undo it. Idempotent. */
  async stop(): Promise<void> {
    this.#started = false;
    this.#stopped = true;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    while (this.#beating !== null) await this.#beating;
    await Promise.allSettled(this.#open);
  }

  #isStopped(): boolean {
    return this.#stopped;
  }

  #begin(): Promise<boolean> {
    const limitMs = this.#open.size < MOST_HANGING ? this.intervalMs : null;
    const retryMs = Math.min(RETRY_AFTER_MS, this.intervalMs);
    this.#beating = this.#send(limitMs).then(
      () => this.#ended(true, this.intervalMs),
      (error: unknown) => {
        const isLate = error instanceof LateAnswer;
        if (!isLate || this.#isLate) this.#ports.faults.failed("heartbeat", error);
        this.#isLate = isLate;
        // A late one has used up the pause.
        return this.#ended(false, isLate ? 0 : retryMs);
      },
    );
    return this.#beating;
  }

  #ended(taken: boolean, nextMs: number): boolean {
    this.#beating = null;
    this.#beatWithin(nextMs);
    return taken;
  }

  /** @param limitMs how long its answer is waited for; null: as long as the ledger does itself. */
  async #send(limitMs: number | null): Promise<void> {
    const { clock, owned } = this.#ports;
    this.#dueMs = Infinity;
    const { beats, of } = owned.beats();
    let answer: HeartbeatAnswer;
    try {
      const call = this.#call(beats);
      answer = await (limitMs === null
        ? call
        : within(clock, limitMs, call, () => Promise.reject(new LateAnswer(limitMs))));
    } catch (error) {
      owned.unanswered(beats, of);
      throw error;
    }
    owned.answered(answer, of);
  }

  #call(beats: readonly JobBeat[]): Promise<HeartbeatAnswer> {
    const { ledger, clock, faults, describe } = this.#ports;
    const call = ledger
      .heartbeat(describe(), beats)
      .then((answer) => {
        this.#lastWallMs = clock.nowMs();
        this.#isLate = false;
        faults.worked("heartbeat");
        return answer;
      })
      .finally(() => this.#open.delete(call));
    this.#open.add(call);
    return call;
  }

  #beatWithin(delayMs: number): void {
    const dueMs = this.#ports.clock.monotonicMs() + delayMs;
    if (!this.#started || dueMs >= this.#dueMs) return;
    this.#dueMs = dueMs;
    this.#cancelTimer?.();
    this.#cancelTimer = this.#ports.clock.timer(delayMs, () => {
      void this.beat();
    });
  }
}

class LateAnswer extends LedgerError {
  constructor(limitMs: number) {
    super(
      "ledger_unavailable",
      `no answer to a heartbeat within ${String(Math.round(limitMs))} ms`,
    );
  }
}
