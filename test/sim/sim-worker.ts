/**
 * A worker as the ledger meets it: claims, beats, settles. It may be stopped past its lease and then
 * go on as if nothing had happened, writing what it still believes; or die with all that it held.
 */
import type { Claim } from "../../src/job/job.js";
import type { Status } from "../../src/job/state.js";
import type { ClaimedJob, End, Ledger, Settlement } from "../../src/ledger/ledger.js";
import { beat } from "../ledger/acts.js";
import type { SeededRandom } from "./seeded-random.js";

/** What must become of a settlement: the status that it leads to, or null where it is refused. */
export type Expected = Status | null;

/** What the world checks about each thing that a worker does. */
export interface Watchman {
  claimed(workerId: string, jobs: readonly ClaimedJob[]): void;
  /** Called before the ledger is: what it must answer. */
  expectSettle(settlements: readonly Settlement[]): Promise<Expected[]>;
  settled(
    settlements: readonly Settlement[],
    expected: readonly Expected[],
    answers: readonly (Status | null)[],
  ): void;
  told(workerId: string, what: string): void;
}

interface Run {
  readonly claim: Claim;
  readonly claimed: ClaimedJob;
  readonly endsAtMs: number;
  mustStop: boolean;
}

export class SimWorker {
  readonly workerId: string;
  readonly #slots: number;
  readonly #tasks: readonly string[];
  readonly #runs = new Map<string, Run>();
  /** Does nothing before this time. */
  pausedUntilMs = 0;

  constructor(workerId: string, slots: number, tasks: readonly string[]) {
    this.workerId = workerId;
    this.#slots = slots;
    this.#tasks = tasks;
  }

  get busy(): number {
    return this.#runs.size;
  }

  /** One turn of its loop: what has ended is settled first, then it beats, then it claims. */
  async turn(
    ledger: Ledger,
    nowMs: number,
    random: SeededRandom,
    watchman: Watchman,
  ): Promise<void> {
    await this.#settleEnded(ledger, nowMs, random, watchman);
    await this.#beat(ledger, watchman);
    const limit = this.#slots - this.#runs.size;
    const claimed = await ledger.claim({ workerId: this.workerId, tasks: this.#tasks, limit });
    watchman.claimed(this.workerId, claimed);
    if (claimed.length > limit)
      throw new Error(`${this.workerId} got ${String(claimed.length)} jobs for ${String(limit)}`);
    for (const one of claimed) {
      const { jobId, attempt } = one.job;
      const endsAtMs = nowMs + random.between(0, 30_000);
      const claim = { jobId, workerId: this.workerId, attempt };
      this.#runs.set(jobId, { claim, claimed: one, endsAtMs, mustStop: false });
    }
  }

  async #settleEnded(
    ledger: Ledger,
    nowMs: number,
    random: SeededRandom,
    watchman: Watchman,
  ): Promise<void> {
    const settlements: Settlement[] = [];
    for (const [jobId, run] of this.#runs) {
      if (run.endsAtMs > nowMs && !run.mustStop) continue;
      this.#runs.delete(jobId);
      settlements.push({ ...run.claim, end: endOf(run, random) });
    }
    if (settlements.length === 0) return;
    const expected = await watchman.expectSettle(settlements);
    watchman.settled(settlements, expected, await ledger.settle(settlements));
  }

  async #beat(ledger: Ledger, watchman: Watchman): Promise<void> {
    const jobs = [...this.#runs.values()].map(({ claim }) => claim);
    const worker = beat(this.workerId, { tasks: this.#tasks });
    const { cancelRequested, lost } = await ledger.heartbeat(worker, jobs);
    for (const jobId of lost) this.#runs.delete(jobId);
    for (const jobId of cancelRequested) {
      const run = this.#runs.get(jobId);
      if (run !== undefined) run.mustStop = true;
    }
    if (lost.length + cancelRequested.length > 0)
      watchman.told(
        this.workerId,
        `lost [${lost.join(" ")}] cancel [${cancelRequested.join(" ")}]`,
      );
  }
}

function endOf(run: Run, random: SeededRandom): End {
  if (run.mustStop && !random.oneIn(8)) return { event: "stop" };
  const { job, payloadJson } = run.claimed;
  return random.pick<End>([
    { event: "succeed", resultJson: payloadJson },
    { event: "succeed", resultJson: payloadJson },
    { event: "fail", errorMessage: "Error: simulated" },
    { event: "time_out", errorMessage: "TimeLimit: simulated" },
    { event: "retry", errorMessage: "Error: simulated", delayMs: random.between(0, 20_000) },
    { event: "retry", errorMessage: "Error: simulated", delayMs: random.between(0, 20_000) },
    { event: "release", payloadJson, startedAtMs: job.startedAtMs },
  ]);
}
