/**
 * One transaction of the database thread: its statements, the time of the call at hand, and the
 * counts. The counts are read once and written once, however many jobs move, and always inside the
 * transaction that moves them. Should someone else have written to the table past the ledger, a count
 * would fall below zero; then what is queued and running is counted anew.
 */
import type { Row } from "./protocol.js";
import { RecentEnds } from "./recent-ends.js";
import { integer, toIso } from "./rows.js";
import type { Statements } from "./statements.js";

interface CountsNow {
  queued: number;
  running: number;
  terminal: number;
  /** Ever. */
  ended: number;
}

export class Transaction {
  readonly run: Statements;
  readonly recentEnds: RecentEnds;
  #nowMs = 0;
  #now = toIso(0);
  #counts: CountsNow | undefined;
  #changed = false;

  /** @param recentEnds of the store; only who looks for them needs those. */
  constructor(statements: Statements, recentEnds = new RecentEnds()) {
    this.run = statements;
    this.recentEnds = recentEnds;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  set nowMs(nowMs: number) {
    if (nowMs === this.#nowMs) return;
    this.#nowMs = nowMs;
    this.#now = toIso(nowMs);
  }

  /** As text. */
  get now(): string {
    return this.#now;
  }

  get counts(): Readonly<CountsNow> {
    return this.#load();
  }

  /** Records in the counts that jobs came, went or moved; ends and evictions each for themselves. */
  count({ queued = 0, running = 0, terminal = 0 }: Partial<Omit<CountsNow, "ended">>): void {
    if (queued === 0 && running === 0 && terminal === 0) return;
    const counts = this.#load();
    counts.queued += queued;
    counts.running += running;
    counts.terminal += terminal;
    counts.ended += Math.max(0, terminal);
    this.#changed = true;
  }

  /** Whether the counts differ from what is recorded. */
  get changed(): boolean {
    return this.#changed;
  }

  /** Before the commit. */
  finish(): void {
    if (!this.#changed) return;
    const counts = this.#load();
    if (counts.queued < 0 || counts.running < 0 || counts.terminal < 0) this.recount();
    this.run.setCounts.run(counts.queued, counts.running, counts.terminal, counts.ended);
  }

  /** Counts what is queued and running; as cheap as there is little of it. */
  recount(): void {
    const counts = this.#load();
    const queued = one(this.run.countQueued.get());
    const running = one(this.run.countRunning.get());
    const terminal = Math.max(0, counts.terminal);
    this.count({
      queued: queued - counts.queued,
      running: running - counts.running,
      terminal: terminal - counts.terminal,
    });
  }

  #load(): CountsNow {
    if (this.#counts === undefined) {
      const row = this.run.counts.get();
      this.#counts = {
        queued: integer(row?.[0]),
        running: integer(row?.[1]),
        terminal: integer(row?.[2]),
        ended: integer(row?.[3]),
      };
    }
    return this.#counts;
  }
}

function one(row: Row | undefined): number {
  return integer(row?.[0]);
}
