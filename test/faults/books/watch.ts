/**
 * Looks at the ledger's counts all through a run: whether the depth ever passes its bound, how many
 * jobs have ended, and whether they go on ending. It looks past proxies, and while the store is away
 * it goes on trying.
 */
import type { Counts, Ledger } from "../../../src/ledger/ledger.js";
import { pause } from "../pause.js";

const LOOK_EVERY_MS = 50;
/** Nothing has ended for so long, though the store answers and jobs are left: it has come to a halt. */
const HALT_MS = 90_000;

export class Watch {
  looks = 0;
  /** Looks that the store did not answer. */
  blind = 0;
  deepest = 0;
  readonly faults: string[] = [];
  #last: Counts = { queued: 0, running: 0, total: 0, oldestQueuedMs: null };
  #movedMs = performance.now();
  #closed = false;
  readonly #heard = new Set<() => void>();
  readonly #ledger: Ledger;
  readonly #bound: number;
  #loop: Promise<void> = Promise.resolve();

  constructor(ledger: Ledger, bound: number) {
    this.#ledger = ledger;
    this.#bound = bound;
  }

  get ended(): number {
    return this.#last.total - this.depth;
  }

  get depth(): number {
    return this.#last.queued + this.#last.running;
  }

  begin(): void {
    this.#loop = this.#run();
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#loop;
  }

  /** Resolves once `holds` does, looked at after each look. @throws Error when nothing moves any more. */
  until(holds: () => boolean): Promise<void> {
    this.#movedMs = performance.now();
    return new Promise((resolve, reject) => {
      const heard = (): void => {
        const halted = performance.now() - this.#movedMs > HALT_MS;
        if (!holds() && !halted && !this.#closed) return;
        this.#heard.delete(heard);
        if (holds()) resolve();
        else void this.#halted().then(reject);
      };
      this.#heard.add(heard);
      heard();
    });
  }

  /** Says what is left. */
  async #halted(): Promise<Error> {
    const { jobs } = await this.#ledger.list({ statuses: ["queued", "running"], limit: 10 });
    const left = jobs.map(({ jobId, status, attempt, workerId }) =>
      [jobId, status, attempt, workerId].join(" "),
    );
    return new Error(`came to a halt: ${JSON.stringify(this.#last)}, ${left.join("; ")}`);
  }

  async #run(): Promise<void> {
    while (!this.#closed) {
      await this.#look();
      for (const heard of this.#heard) heard();
      await pause(LOOK_EVERY_MS);
    }
    for (const heard of this.#heard) heard();
  }

  async #look(): Promise<void> {
    this.looks += 1;
    try {
      const counts = await this.#ledger.counts();
      const endedBefore = this.ended;
      this.#last = counts;
      if (this.ended !== endedBefore) this.#movedMs = performance.now();
    } catch {
      this.blind += 1;
      this.#movedMs = performance.now();
      return;
    }
    if (this.depth > this.#bound)
      this.faults.push(`the depth was ${String(this.depth)}, the bound is ${String(this.#bound)}`);
    this.deepest = Math.max(this.deepest, this.depth);
  }
}
