/**
 * The ledger in this process's memory: nothing to install, nothing survives the process. It is the
 * reference that the durable ledgers are compared with.
 *
 * Every verb runs to its end in one turn of the event loop, which is what makes it atomic; listeners
 * are called when all of a verb's changes are in place. Counts, depth and looks are O(1), a claim or
 * an end O(log waiting). The payload is dropped with the claim of the last allowed attempt and with
 * every end, since payloads are large. Nothing here does I/O: the only failures are `ledger_closed`
 * and bugs.
 */
import { LedgerError } from "../../job/errors.js";
import type { Job, NewJob } from "../../job/job.js";
import { isTerminal, type Status } from "../../job/state.js";
import { owns } from "../../job/transition.js";
import type { Clock } from "../../runtime/clock.js";
import type {
  AdmissionBound,
  CancelOutcome,
  ClaimedJob,
  ClaimRequest,
  Counts,
  EvictLimit,
  HeartbeatAnswer,
  InspectLimit,
  JobBeat,
  JobPage,
  JobResult,
  Ledger,
  LedgerReport,
  ListQuery,
  RejectLimit,
  RescuedJob,
  RescueLimit,
  Settlement,
  SubmitOutcome,
  Unsubscribe,
  WorkerBeat,
  WorkerRecord,
} from "../ledger.js";
import { Book, type Turn } from "./book.js";
import { Listeners } from "./listeners.js";
import { counts, inspect } from "./looks.js";
import { MemoryPlans } from "./memory-plans.js";
import { submit } from "./submitting.js";
import { evict, expire, reject, rescue, type ExpireLimit } from "./sweeps.js";

/** A list looks at no more records than this for one page, whatever its filter leaves out. */
const LOOKS_PER_PAGE = 10_000;
const LARGEST_PAGE = 1_000;
/** The one key of the listeners for work. */
const WORK = "work";

export function openMemoryLedger({ clock }: { readonly clock: Clock }): Ledger {
  return new MemoryLedger(clock);
}

class MemoryLedger implements Ledger {
  readonly kind = "memory";
  readonly plans = new MemoryPlans((body) => this.#verb(body));
  readonly #clock: Clock;
  readonly #book = new Book();
  readonly #watchers = new Listeners();
  readonly #workListeners = new Listeners();
  #closed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  submit(jobs: readonly NewJob[], bound: AdmissionBound): Promise<SubmitOutcome[]> {
    return this.#verb((turn) => submit(this.#book, jobs, bound, turn));
  }

  claim({ workerId, tasks, limit }: ClaimRequest): Promise<ClaimedJob[]> {
    return this.#verb((turn) => {
      const named = new Set(tasks);
      const claimed: ClaimedJob[] = [];
      while (claimed.length < limit) {
        const entry = this.#book.waiting.next(named, turn.nowMs);
        if (entry === undefined) break;
        const { payloadJson } = entry;
        if (payloadJson === null) throw new Error(`job ${entry.job.jobId} waits without a payload`);
        if (!this.#book.apply(entry, { event: "claim", workerId }, turn)) break;
        if (entry.job.attempt >= entry.job.maxAttempts) entry.payloadJson = null;
        claimed.push({ job: entry.job, payloadJson });
      }
      return claimed;
    });
  }

  settle(settlements: readonly Settlement[]): Promise<(Status | null)[]> {
    return this.#verb((turn) =>
      settlements.map((settlement) => {
        const { end } = settlement;
        const entry = this.#book.jobs.get(settlement.jobId);
        if (entry === undefined || !owns(entry.job, settlement)) return null;
        if (end.event === "release" && end.startedAtMs !== entry.job.startedAtMs) return null;
        if (!this.#book.apply(entry, end, turn)) return null;
        if (end.event === "succeed") entry.resultJson = end.resultJson;
        if (end.event === "release" && entry.job.status === "queued")
          entry.payloadJson ??= end.payloadJson;
        return entry.job.status;
      }),
    );
  }

  heartbeat(worker: WorkerBeat, jobs: readonly JobBeat[]): Promise<HeartbeatAnswer> {
    return this.#verb(({ nowMs }) => {
      const { workerId } = worker;
      const startedAtMs = this.#book.workers.get(workerId)?.startedAtMs ?? nowMs;
      const tasks = [...worker.tasks];
      this.#book.workers.set(workerId, { ...worker, tasks, startedAtMs, lastHeartbeatMs: nowMs });
      const cancelRequested: string[] = [];
      const lost: string[] = [];
      for (const { jobId, attempt, progressJson } of jobs) {
        const entry = this.#book.jobs.get(jobId);
        if (entry === undefined || !owns(entry.job, { jobId, workerId, attempt })) {
          lost.push(jobId);
          continue;
        }
        const progress = progressJson === undefined ? {} : { progressJson };
        entry.job = { ...entry.job, lastHeartbeatMs: nowMs, ...progress };
        if (entry.job.cancelRequestedAtMs !== null) cancelRequested.push(jobId);
      }
      return { cancelRequested, lost };
    });
  }

  leave(workerId: string): Promise<void> {
    return this.#verb(() => {
      this.#book.workers.delete(workerId);
    });
  }

  cancel(jobIds: readonly string[]): Promise<CancelOutcome[]> {
    return this.#verb((turn) =>
      jobIds.map((jobId): CancelOutcome => {
        const entry = this.#book.jobs.get(jobId);
        if (entry === undefined) return { kind: "unknown" };
        if (this.#book.apply(entry, { event: "cancel" }, turn))
          return { kind: "cancelled", job: entry.job };
        if (isTerminal(entry.job.status)) return { kind: "terminal", job: entry.job };
        if (entry.job.cancelRequestedAtMs === null) {
          entry.job = { ...entry.job, cancelRequestedAtMs: turn.nowMs };
          turn.changedIds.push(jobId);
        }
        return { kind: "requested", job: entry.job };
      }),
    );
  }

  get(jobIds: readonly string[]): Promise<(Job | null)[]> {
    return this.#verb(() => jobIds.map((jobId) => this.#book.jobs.get(jobId)?.job ?? null));
  }

  result(jobId: string): Promise<JobResult | null> {
    return this.#verb(() => {
      const entry = this.#book.jobs.get(jobId);
      return entry === undefined ? null : { job: entry.job, resultJson: entry.resultJson };
    });
  }

  payload(jobId: string): Promise<string | null> {
    return this.#verb(() => this.#book.jobs.get(jobId)?.payloadJson ?? null);
  }

  list({ statuses, task, planId, limit, cursor }: ListQuery): Promise<JobPage> {
    return this.#verb((): JobPage => {
      const jobs: Job[] = [];
      const size = Math.min(Math.max(limit, 1), LARGEST_PAGE);
      let looks = 0;
      let lastLookedAt: string | undefined;
      for (const { job } of this.#book.jobs.newestBelow(cursor)) {
        if ((jobs.length >= size || looks >= LOOKS_PER_PAGE) && lastLookedAt !== undefined)
          return { jobs, nextCursor: lastLookedAt };
        looks += 1;
        lastLookedAt = job.jobId;
        if (task !== undefined && job.task !== task) continue;
        if (planId !== undefined && job.planId !== planId) continue;
        if (statuses === undefined || statuses.includes(job.status)) jobs.push(job);
      }
      return { jobs };
    });
  }

  counts(): Promise<Counts> {
    return this.#verb(({ nowMs }) => counts(this.#book, nowMs));
  }

  workers(): Promise<WorkerRecord[]> {
    return this.#verb(() => [...this.#book.workers.values()]);
  }

  inspect(limit: InspectLimit): Promise<LedgerReport> {
    return this.#verb(({ nowMs }) => inspect(this.#book, limit, nowMs));
  }

  expire(limit: ExpireLimit): Promise<number> {
    return this.#verb((turn) => expire(this.#book, limit, turn));
  }

  reject(limit: RejectLimit): Promise<number> {
    return this.#verb((turn) => reject(this.#book, limit, turn));
  }

  rescue(limit: RescueLimit): Promise<RescuedJob[]> {
    return this.#verb((turn) => rescue(this.#book, limit, turn));
  }

  evict(limit: EvictLimit): Promise<number> {
    return this.#verb((turn) => evict(this.#book, limit, turn));
  }

  watch(jobId: string, onChange: () => void): Unsubscribe {
    return this.#closed ? () => undefined : this.#watchers.add(jobId, onChange);
  }

  onWork(onWork: () => void): Unsubscribe {
    return this.#closed ? () => undefined : this.#workListeners.add(WORK, onWork);
  }

  close(): Promise<void> {
    this.#closed = true;
    this.#watchers.clear();
    this.#workListeners.clear();
    return Promise.resolve();
  }

  /** Runs a verb at once and to its end; what it throws is the rejection. */
  #verb<T>(body: (turn: Turn) => T): Promise<T> {
    return new Promise((resolve) => {
      if (this.#closed)
        throw new LedgerError("ledger_closed", "the memory ledger is closed: open a new one");
      const turn: Turn = { nowMs: this.#clock.nowMs(), changedIds: [], work: false };
      const answer = body(turn);
      for (const jobId of turn.changedIds) this.#watchers.notify(jobId);
      if (turn.work) this.#workListeners.notify(WORK);
      resolve(answer);
    });
  }
}
