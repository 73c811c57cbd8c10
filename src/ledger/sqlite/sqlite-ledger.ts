/**
 * The ledger in one SQLite file: nothing to install, durable, shared by any number of processes of
 * one machine. The database lives in a thread of its own (ledger-thread.ts); concurrent calls share a
 * message and a commit. What submit, settle, cancel and the sweeps have answered is on disk; claims
 * and beats may be lost with the power, which leaves the job as it was before.
 *
 * This class translates: verbs to operations, answers to records, and changes to wake-ups, which go
 * out as the answer arrives and so before any caller learns of it. Faults: `LedgerError`s, see
 * failures.ts. A call whose arguments are at fault (an id used twice) rejects alone, with an `Error`.
 */
import { resolve } from "node:path";
import type { Job, NewJob } from "../../job/job.js";
import { TRANSITIONS, type Status } from "../../job/state.js";
import { fingerprintOf, newlyQueued } from "../../job/transition.js";
import type { Clock } from "../../runtime/clock.js";
import type { Logger } from "../../runtime/logger.js";
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
import type { PlanRecords } from "../plan-records.js";
import { AFTER_JOB, textOrNull, toStatus } from "../sql/rows.js";
import { Watchers } from "../sql/watchers.js";
import { prepareFile } from "./database-file.js";
import { ForeignLooks } from "./foreign-looks.js";
import { toClaimedJobs, toList, toRecent, toSettledJob, toSubmitOutcomes } from "./translating.js";
import type { Row } from "./protocol.js";
import {
  lookOf,
  standing,
  toCounts,
  toJob,
  toSubmittedRow,
  toWorker,
  toWorkerRow,
} from "./rows.js";
import { SqlitePlans } from "./sqlite-plans.js";
import { ThreadLink, type ThreadLinkOptions } from "./thread-link.js";

export interface SqliteLedgerOptions extends Pick<ThreadLinkOptions, "isBusy" | "startThread"> {
  /** The database file; it and its folder are made when missing. */
  readonly path: string;
  /** False: it must be there, and be a ledger. Default: true. */
  readonly create?: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** @throws LedgerError when the file can't be opened as a ledger; its code and message say why. */
export async function openSqliteLedger(options: SqliteLedgerOptions): Promise<Ledger> {
  const path = resolve(options.path);
  const { create = true } = options;
  await prepareFile(path, create);
  const ledger = new SqliteLedger({ ...options, path, create });
  await ledger.open();
  return ledger;
}

class SqliteLedger implements Ledger {
  readonly kind = "sqlite";
  readonly plans: PlanRecords;
  readonly #clock: Clock;
  readonly #link: ThreadLink;
  readonly #watchers: Watchers;
  readonly #foreignLooks: ForeignLooks;
  #closed = false;

  constructor(options: SqliteLedgerOptions & { readonly create: boolean }) {
    this.#clock = options.clock;
    this.#watchers = new Watchers({
      look: (jobIds) => this.#link.call({ verb: "look", jobIds }, (looks) => looks),
      changes: {
        recent: (limit) => this.#link.call({ verb: "recent", limit }, toRecent),
        standing,
      },
    });
    this.#foreignLooks = new ForeignLooks({ ...options, watchers: this.#watchers });
    this.#link = new ThreadLink({
      ...options,
      onGap: () => {
        this.#watchers.all();
      },
      onForeignChange: ({ look, work }) => {
        if (work) this.#watchers.work();
        if (look) this.#foreignLooks.changed();
      },
    });
    this.plans = new SqlitePlans(this.#link);
  }

  open(): Promise<void> {
    return this.#link.open();
  }

  submit(jobs: readonly NewJob[], { maxDepth, whole }: AdmissionBound): Promise<SubmitOutcome[]> {
    const nowMs = this.#clock.nowMs();
    const records: Job[] = [];
    const rows: Row[] = [];
    for (const job of jobs) {
      const record = newlyQueued(job, nowMs);
      records.push(record);
      rows.push(toSubmittedRow(record, fingerprintOf(job), job.payloadJson));
    }
    const all = whole === true ? { whole } : {};
    const outcomes = this.#link.call(
      { verb: "submit", maxDepth, jobs: rows, ...all },
      (answer): SubmitOutcome[] =>
        answer === null
          ? records.map((job) => ({ kind: "accepted", job }))
          : toSubmitOutcomes(records, answer),
    );
    // Calls are done in the order in which they are made: a claim that this sets off sees these jobs, and
    // shares their commit. An idle worker so starts a job one way to the thread and back after its submit.
    this.#watchers.work();
    return outcomes;
  }

  claim({ workerId, tasks, limit }: ClaimRequest): Promise<ClaimedJob[]> {
    return this.#link.call({ verb: "claim", workerId, tasks, limit }, (cells) => {
      const claimed = toClaimedJobs(cells, workerId);
      for (const { job } of claimed) this.#watchers.changed(job.jobId);
      return claimed;
    });
  }

  settle(settlements: readonly Settlement[]): Promise<(Status | null)[]> {
    return this.#link.call({ verb: "settle", ends: settlements.map(toSettledJob) }, (answer) => {
      const statuses = answer ?? settlements.map(({ end }) => TRANSITIONS[end.event].to);
      for (const [index, { jobId }] of settlements.entries())
        if (statuses[index] !== null) this.#watchers.changed(jobId);
      if (statuses.includes("queued")) this.#watchers.work();
      return [...statuses];
    });
  }

  heartbeat(worker: WorkerBeat, jobs: readonly JobBeat[]): Promise<HeartbeatAnswer> {
    const beats = jobs.map(
      ({ jobId, attempt, progressJson }) => [jobId, attempt, progressJson ?? null] as const,
    );
    const { workerId } = worker;
    return this.#link.call(
      { verb: "heartbeat", workerId, worker: toWorkerRow(worker), jobs: beats },
      (answer) => answer,
    );
  }

  leave(workerId: string): Promise<void> {
    return this.#link.call({ verb: "leave", workerId }, () => undefined);
  }

  cancel(jobIds: readonly string[]): Promise<CancelOutcome[]> {
    return this.#link.call({ verb: "cancel", jobIds }, (outcomes) =>
      outcomes.map(({ kind, job: row }): CancelOutcome => {
        if (kind === "unknown") return { kind };
        const job = toJob(row);
        if (kind !== "terminal") this.#watchers.changed(job.jobId);
        return { kind, job };
      }),
    );
  }

  get(jobIds: readonly string[]): Promise<(Job | null)[]> {
    return this.#link.call({ verb: "get", jobIds }, (rows) =>
      rows.map((row) => (row === null ? null : this.#looked(row))),
    );
  }

  result(jobId: string): Promise<JobResult | null> {
    return this.#link.call({ verb: "result", jobId }, (row) =>
      row === null ? null : { job: this.#looked(row), resultJson: textOrNull(row[AFTER_JOB]) },
    );
  }

  payload(jobId: string): Promise<string | null> {
    return this.#link.call({ verb: "payload", jobId }, (payloadJson) => payloadJson);
  }

  list(query: ListQuery): Promise<JobPage> {
    return this.#link.call(toList(query), (page) => {
      const jobs = page.jobs.map((row) => this.#looked(row));
      return page.nextCursor === null ? { jobs } : { jobs, nextCursor: page.nextCursor };
    });
  }

  counts(): Promise<Counts> {
    return this.#link.call({ verb: "counts" }, toCounts);
  }

  workers(): Promise<WorkerRecord[]> {
    return this.#link.call({ verb: "workers" }, (rows) => rows.map(toWorker));
  }

  inspect(limit: InspectLimit): Promise<LedgerReport> {
    return this.#link.call({ ...limit, verb: "inspect" }, (answer, nowMs) => ({
      nowMs,
      software: `SQLite ${answer.software}`,
      schemaVersion: answer.schemaVersion,
      counts: toCounts(answer.counts, nowMs),
      workers: answer.workers.map(toWorker),
      oldestQueued: answer.oldest === null ? null : toJob(answer.oldest),
      stuck: answer.stuck.map(toJob),
      waiting: answer.waiting.map(([task, queued]) => ({ task, queued })),
    }));
  }

  expire(limit: { readonly waitLimitMs: number; readonly chunk: number }): Promise<number> {
    return this.#link.call({ ...limit, verb: "expire" }, (jobIds) => this.#swept(jobIds));
  }

  reject(limit: RejectLimit): Promise<number> {
    return this.#link.call({ ...limit, verb: "reject" }, (jobIds) => this.#swept(jobIds));
  }

  rescue(limit: RescueLimit): Promise<RescuedJob[]> {
    return this.#link.call({ ...limit, verb: "rescue" }, (rescued) => {
      const answer = rescued.map(([jobId, workerId, status]) => {
        this.#watchers.changed(jobId);
        return { jobId, workerId, status: toStatus(status) };
      });
      if (answer.some(({ status }) => status === "queued")) this.#watchers.work();
      return answer;
    });
  }

  async evict(limit: EvictLimit): Promise<number> {
    const { count, more } = await this.#link.call({ ...limit, verb: "evict" }, (answer) => ({
      count: this.#swept(answer.jobIds),
      more: answer.more,
    }));
    if (!more) return count;
    // What is forgotten stays so: should the rest fail, the next sweep says why.
    return count + (await this.evict({ ...limit, chunk: limit.chunk - count }).catch(() => 0));
  }

  watch(jobId: string, onChange: () => void, known?: Job): Unsubscribe {
    if (this.#closed) return () => undefined;
    return this.#watchers.watch(jobId, onChange, known && lookOf(known));
  }

  onWork(onWork: () => void): Unsubscribe {
    return this.#closed ? () => undefined : this.#watchers.onWork(onWork);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#foreignLooks.close();
    await this.#link.close();
    this.#watchers.clear();
  }

  /** A row that a caller asked for: what it shows need not be told any more. */
  #looked(row: Row): Job {
    const job = toJob(row);
    this.#watchers.saw(job.jobId, lookOf(job));
    return job;
  }

  #swept(jobIds: readonly string[]): number {
    for (const jobId of jobIds) this.#watchers.changed(jobId);
    return jobIds.length;
  }
}
