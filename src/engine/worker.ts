/**
 * The claim loop: brings jobs from the ledger to free slots, and nothing more.
 *
 * For each slot it could use it puts a ticket into the pool's line, behind the synchronous requests
 * that came before. Tickets granted in one turn are claimed for in one call; a slot for which no job
 * came is given back at once. While more is known to wait, tickets stay in line, so that a slot that
 * comes free finds its job. It claims when the ledger hints at work, when a slot comes free while
 * more may wait, and once per poll interval as the fallback.
 *
 * Claimed jobs go through a buffer, which holds more than the free slots take only where runs are
 * tiny (claim-ahead.ts), or where a claim was answered so late that its slots were given back. What
 * waits there for too long is released to other workers. One claim is under way at a time.
 */
import type { Ledger, Unsubscribe } from "../ledger/ledger.js";
import type { Clock } from "../runtime/clock.js";
import { atTurnEnd } from "../runtime/turn.js";
import type { CautiousAverage } from "./cautious-average.js";
import { claimAhead, MAX_BUFFERED_MS, MAX_UNSETTLED } from "./claim-ahead.js";
import { JobBuffer } from "./job-buffer.js";
import type { JobRuns } from "./job-runs.js";
import type { LedgerFaults } from "./ledger-faults.js";
import type { OwnedJobs } from "./owned-jobs.js";
import type { Pool, Slot } from "./pool.js";
import { Strays } from "./strays.js";

/** A claim that takes longer than this holds no slots: synchronous requests don't wait for a ledger that hangs. */
const SLOTS_WAIT_MS = 250;

export interface WorkerPorts {
  readonly workerId: string;
  readonly ledger: Ledger;
  readonly taskNames: readonly string[];
  readonly pool: Pool;
  readonly runs: JobRuns;
  readonly owned: OwnedJobs;
  readonly faults: LedgerFaults;
  readonly runTimes: CautiousAverage;
  readonly clock: Clock;
  readonly pollIntervalMs: number;
}

export class Worker {
  readonly #ports: WorkerPorts;
  readonly #buffer: JobBuffer;
  readonly #strays: Strays;
  /** Granted, and without a job. */
  readonly #slots: Slot[] = [];
  /** One for each place in the pool's line; the call leaves it. */
  readonly #tickets = new Set<() => boolean>();
  /** More may wait in the ledger than the last claim brought. */
  #backlog = false;
  #claiming: Promise<void> | null = null;
  /** The claim under way takes so long that its slots were given back. */
  #late = false;
  #draining = true;
  /** It has claimed in this turn of the event loop: others come first now. */
  #rests = false;
  /** Too many ends wait to be recorded. */
  #crowded = false;
  #pumpDue = false;
  #stopListening: Unsubscribe | null = null;
  #cancelPoll: (() => void) | null = null;

  constructor(ports: WorkerPorts) {
    this.#ports = ports;
    this.#strays = new Strays(ports);
    this.#buffer = new JobBuffer({
      ...ports,
      onStale: () => {
        // Runs are not as short as they were: nothing more is claimed ahead for a while.
        ports.runTimes.add(MAX_BUFFERED_MS);
      },
    });
    ports.faults.onRecovered(() => {
      this.#wake();
    });
    ports.owned.onRemoved = () => {
      const { owned, pool } = ports;
      if (!this.#crowded || owned.size > pool.size + MAX_UNSETTLED / 2) return;
      this.#crowded = false;
      this.#schedulePump();
    };
  }

  /** Begins to claim. */
  start(): void {
    this.#draining = false;
    this.#stopListening = this.#ports.ledger.onWork(() => {
      this.#wake();
    });
    this.#wake();
  }

  /** Claims nothing more and releases what waits in the buffer; resolves when that is recorded or given up. */
  async drain(): Promise<void> {
    this.#draining = true;
    this.#backlog = false;
    this.#stopListening?.();
    this.#stopListening = null;
    this.#cancelPoll?.();
    this.#cancelPoll = null;
    this.#keepTickets(0);
    this.#giveSlotsBack();
    await Promise.all([this.#claiming, this.#buffer.releaseAll()]);
  }

  /**
   * A job's handler has gone from `slot`: the next one that waits here gets it, unless others stand in
   * line. Then it goes the way through the line, in which jobs have their places too.
   */
  freed(slot: Slot): void {
    const onlyJobsWait = this.#ports.pool.waiting === this.#tickets.size;
    const next = onlyJobsWait && !this.#draining ? this.#buffer.take() : undefined;
    if (next === undefined) {
      slot.release();
      return;
    }
    this.#ports.runs.start(next, slot.handOn());
    if (this.#needsPump()) this.#schedulePump();
  }

  /** Whether the job that has just left the buffer makes a difference: most of many tiny ones don't. */
  #needsPump(): boolean {
    if (this.#buffer.size < this.#ports.pool.size) return true;
    return this.#claiming === null && this.#backlog && this.#claimLimit() > 0;
  }

  #wake(): void {
    if (this.#draining) return;
    this.#backlog = true;
    this.#schedulePump();
  }

  /** Once per turn, so that slots granted in one turn share a claim. */
  #schedulePump(): void {
    if (this.#pumpDue) return;
    this.#pumpDue = true;
    queueMicrotask(() => {
      this.#pumpDue = false;
      this.#pump();
    });
  }

  /** Brings the tickets, the claim and the timers in line with what is known now. */
  #pump(): void {
    if (this.#draining) return;
    const mayClaim = this.#backlog && this.#mayClaim();
    // Slots sought while a late claim holds the line would be granted, given back and sought for ever.
    const seeks = this.#claiming === null ? mayClaim : !this.#late;
    this.#keepTickets(seeks ? this.#ports.pool.size : this.#buffer.size);
    if (mayClaim && this.#claiming === null) {
      const limit = this.#claimLimit();
      if (limit > 0 || this.#strays.due) this.#claiming = this.#claim(limit);
    }
    if (this.#claiming === null || this.#late) this.#giveSlotsBack();
    this.#armPoll();
    this.#buffer.watchTime();
  }

  /** Without a way to record ends and beats, more running jobs would only be more to lose. */
  #mayClaim(): boolean {
    const { faults, owned, pool } = this.#ports;
    this.#crowded ||= owned.size >= pool.size + MAX_UNSETTLED;
    if (this.#rests || this.#crowded) return false;
    return !faults.has("settle") && !faults.has("heartbeat");
  }

  #claimLimit(): number {
    const { pool, runTimes } = this.#ports;
    const free = this.#slots.length;
    const ahead = claimAhead({
      slots: pool.size,
      typicalRunMs: runTimes.value,
      typicalPayloadChars: this.#buffer.typicalPayloadChars,
    });
    const room = Math.max(0, ahead - this.#buffer.size);
    // With all slots at work the buffer is refilled when half of it is used up, not job by job.
    if (free === 0 && room < ahead / 2) return 0;
    return free + room;
  }

  /** Never rejects. */
  async #claim(limit: number): Promise<void> {
    const { ledger, workerId, taskNames, faults, clock } = this.#ports;
    // A hint that comes from here on may be about a job that this claim did not see.
    this.#backlog = false;
    const cancelLate = clock.timer(SLOTS_WAIT_MS, () => {
      this.#late = true;
      this.#pump();
    });
    this.#oncePerTurn();
    let failed = false;
    try {
      const room = this.#strays.due ? limit - (await this.#takeInStrays()) : limit;
      // A claim of nothing asks the ledger nothing, and so says nothing about it.
      const asks = room > 0;
      const claimed = asks ? await ledger.claim({ workerId, tasks: taskNames, limit: room }) : [];
      if (asks) faults.worked("claim");
      for (const job of claimed) this.#buffer.add(job);
      if (claimed.length >= room) this.#backlog = true;
    } catch (error) {
      faults.failed("claim", error);
      this.#strays.claimFailed();
      failed = true;
    }
    cancelLate();
    this.#late = false;
    this.#claiming = null;
    if (this.#draining) {
      await this.#buffer.releaseAll();
      return;
    }
    // The poll comes back to a ledger that failed; hints that came meanwhile don't make it faster.
    if (failed) this.#backlog = false;
    this.#cancelPoll?.();
    this.#cancelPoll = null;
    this.#dispatch();
    this.#pump();
  }

  /** Answers how many came in. A look that fails is due again, and keeps no claim from being tried. */
  async #takeInStrays(): Promise<number> {
    const strays = await this.#strays.find().catch(() => []);
    for (const job of strays) this.#buffer.add(job);
    return strays.length;
  }

  /**
   * A ledger that answers within the turn of the event loop would let this loop go on for ever in it,
   * with nobody else ever getting a turn: no end recorded, no request read.
   */
  #oncePerTurn(): void {
    this.#rests = true;
    atTurnEnd(() => {
      this.#rests = false;
      if (this.#backlog) this.#pump();
    });
  }

  /** Brings jobs and slots together. */
  #dispatch(): void {
    while (this.#slots.length > 0 && !this.#draining) {
      const owned = this.#buffer.take();
      if (owned === undefined) return;
      const slot = this.#slots.shift();
      if (slot !== undefined) this.#ports.runs.start(owned, slot);
    }
  }

  /** Holds as many tickets, granted slots included, as are of use now. */
  #keepTickets(wanted: number): void {
    const { pool } = this.#ports;
    const count = Math.min(wanted, pool.size);
    for (let held = this.#tickets.size + this.#slots.length; held < count; held += 1)
      this.#takeTicket();
    for (const leave of this.#tickets) {
      if (this.#tickets.size + this.#slots.length <= count) return;
      leave();
      this.#tickets.delete(leave);
    }
  }

  #takeTicket(): void {
    let leave: (() => boolean) | null = null;
    leave = this.#ports.pool.enter((slot) => {
      if (leave !== null) this.#tickets.delete(leave);
      this.#slots.push(slot);
      this.#dispatch();
      this.#schedulePump();
    });
    if (leave !== null) this.#tickets.add(leave);
  }

  #giveSlotsBack(): void {
    for (const slot of this.#slots.splice(0)) slot.release();
  }

  #armPoll(): void {
    this.#cancelPoll ??= this.#ports.clock.timer(this.#ports.pollIntervalMs, () => {
      this.#cancelPoll = null;
      this.#wake();
    });
  }
}
