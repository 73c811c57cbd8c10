/**
 * The ledger: the record of all jobs. It admits, hands out, records ends and forgets; it runs
 * nothing. Memory, SQLite and PostgreSQL implement this one interface, and one conformance suite
 * (test/ledger/conformance.ts) holds all of them to it.
 *
 * Every verb is atomic, and safe to call from any number of processes at once. Lists in, lists out,
 * in the same order: one commit for many jobs is what makes a durable ledger fast, so callers
 * coalesce what is concurrent. Losing a race is a value, never an exception. A verb rejects only
 * with a `LedgerError` (out of reach, full disk, closed): then nothing of the call was recorded,
 * unless the connection broke while it committed.
 *
 * Each ledger has one clock (the server's, or the one it was opened with); callers pass ages, not
 * times.
 */
import type { Claim, Job, NewJob } from "../job/job.js";
import type { Status } from "../job/state.js";
import type { PlanRecords } from "./plan-records.js";

export interface Ledger {
  /** `memory`, `sqlite` or `postgres`; for logs and diagnostics. */
  readonly kind: string;

  /** What is kept of plans; its verbs keep to the rules of the others. */
  readonly plans: PlanRecords;

  /**
   * Records new jobs as queued while queued + running stays at or below `maxDepth`; what would
   * exceed it is refused. The check and the record are one step. The first ones of the list are
   * admitted first. Resolves when the accepted are on disk. An id used twice is a bug: the call
   * rejects with an error that names it, and nothing of it is recorded.
   *
   * A key that a record has already is answered with that record, whatever the bound: nothing is
   * recorded, and the id is not looked at. Of several with one new key, in this call or in others at
   * the same time, exactly one is recorded.
   */
  submit(jobs: readonly NewJob[], bound: AdmissionBound): Promise<SubmitOutcome[]>;

  /**
   * Makes `workerId` the owner of up to `limit` queued jobs that are due, of the tasks named: by
   * priority (larger first), then `runAtMs`, then id. Counts the attempt. May be empty.
   */
  claim(request: ClaimRequest): Promise<ClaimedJob[]>;

  /**
   * Records what became of claimed jobs, and answers the status that each has now; null where the
   * claim was no longer the caller's, which changed nothing. A job whose cancellation was requested
   * never goes back to the queue: it is cancelled instead. Ends are on disk when this resolves.
   */
  settle(settlements: readonly Settlement[]): Promise<(Status | null)[]>;

  /** Records that a worker and its jobs are alive (and their progress); answers what it must know about them. */
  heartbeat(worker: WorkerBeat, jobs: readonly JobBeat[]): Promise<HeartbeatAnswer>;

  /** Removes a worker that has stopped in order from the list of workers. */
  leave(workerId: string): Promise<void>;

  /** Cancels queued jobs; records the request on running ones, whose owner ends them. */
  cancel(jobIds: readonly string[]): Promise<CancelOutcome[]>;

  /** One cheap look each; null where unknown. */
  get(jobIds: readonly string[]): Promise<(Job | null)[]>;

  /** The job with its result (null unless it succeeded), or null where unknown. */
  result(jobId: string): Promise<JobResult | null>;

  /**
   * The payload as recorded; null where the job is unknown. SQL keeps it as long as the record. Memory
   * gives it away with the last allowed attempt, and forgets it with the end: null from then on.
   */
  payload(jobId: string): Promise<string | null>;

  /** Newest first, keyset-paged. A page may be short, even empty, while `nextCursor` says that there is more. */
  list(query: ListQuery): Promise<JobPage>;

  /** One atomic snapshot. */
  counts(): Promise<Counts>;

  workers(): Promise<WorkerRecord[]>;

  /** What someone who asks how things stand wants to know, in one look; each list at most `chunk` long. */
  inspect(limit: InspectLimit): Promise<LedgerReport>;

  /** queued -> timed_out for jobs that are due and have waited longer than `waitLimitMs`. One bounded chunk; answers how many. */
  expire(limit: { readonly waitLimitMs: number; readonly chunk: number }): Promise<number>;

  /**
   * queued -> failed for due jobs that waited longer than `graceMs` and whose task no living worker runs.
   * Only a living worker can tell: where the one that asks is not on record as such, nothing changes.
   */
  reject(limit: RejectLimit): Promise<number>;

  /**
   * Finds running jobs whose worker is lost: ends them, or queues them again, due now, while
   * attempts are left. A worker without a record is judged by its jobs' own beats. Also forgets lost
   * workers, each once none of its jobs is left.
   */
  rescue(limit: RescueLimit): Promise<RescuedJob[]>;

  /** Forgets terminal jobs: those that ended longer than `ttlMs` ago, then the oldest beyond `keep`. One bounded chunk; answers how many. */
  evict(limit: EvictLimit): Promise<number>;

  /**
   * Calls `onChange` after each change of that job that others can see (state, owner, cancel
   * request, eviction), by whichever process, and after every gap in which one may have been
   * missed. It carries no data: look again with `get`. Subscribe first, then look; who gives what he
   * knows of it learns in another way of changes before (by a beat). What a listener throws is dropped.
   */
  watch(jobId: string, onChange: () => void, known?: Job): Unsubscribe;

  /** Calls `onWork` when a job may have become claimable, by whichever process. A hint: claim and see. */
  onWork(onWork: () => void): Unsubscribe;

  /** Waits for the calls under way, then releases everything. Idempotent; later calls reject with `ledger_closed`. */
  close(): Promise<void>;
}

export type Unsubscribe = () => void;

export interface AdmissionBound {
  /** Largest allowed queued + running; <= 0 admits nothing. */
  readonly maxDepth: number;
  /**
   * All of the call's new jobs are recorded or none. Repeated ones count as admitted and take no room;
   * one conflict refuses all. Default: false, each for itself.
   */
  readonly whole?: boolean;
}

export type SubmitOutcome =
  | { readonly kind: "accepted"; readonly job: Job }
  /** The key has a job already, which asked for the same: this is it, as it is now. */
  | { readonly kind: "repeated"; readonly job: Job }
  /**
   * The key has a job already, which asked for something else. Where a whole call gives a new key
   * twice, with two fingerprints, it is the first one's, which was not recorded either.
   */
  | { readonly kind: "conflict"; readonly job: Job }
  /** Not recorded: there was no room for it; or it is in a whole call, of which another one was refused. */
  | { readonly kind: "full"; readonly depth: number };

export interface ClaimRequest {
  readonly workerId: string;
  /** Only jobs of these tasks. */
  readonly tasks: readonly string[];
  /** At most this many; <= 0 claims nothing. */
  readonly limit: number;
}

export interface ClaimedJob {
  readonly job: Job;
  readonly payloadJson: string;
}

/** What became of one claimed job. */
export type Settlement = Claim & { readonly end: End };

export type End =
  | { readonly event: "succeed"; readonly resultJson: string }
  | { readonly event: "fail"; readonly errorMessage: string }
  | { readonly event: "time_out"; readonly errorMessage: string }
  | { readonly event: "stop" }
  /** Due again after `delayMs`. Null, and nothing happens, when no attempt is left (and no cancel was requested). */
  | { readonly event: "retry"; readonly errorMessage: string; readonly delayMs: number }
  /** Never started: the attempt is given back, and the payload with it, which a ledger may have handed out for good. `startedAtMs` tells its claim from the same worker's next one, of the same number: a release that comes again, or late, leaves that alone. */
  | (Pick<Job, "startedAtMs"> & { readonly event: "release"; readonly payloadJson: string });

export interface WorkerBeat {
  readonly workerId: string;
  /** Names the machine (and its boot and process namespace), so that a process of it can tell which workers are gone. */
  readonly host: string;
  readonly pid: number;
  /** Tells a process from a later one with the same pid; empty where the system can't tell. */
  readonly pidStamp: string;
  readonly state: "running" | "draining";
  readonly tasks: readonly string[];
  readonly maxWorkers: number;
  readonly processed: number;
  readonly failed: number;
  readonly cancelled: number;
}

export interface WorkerRecord extends WorkerBeat {
  readonly startedAtMs: number;
  readonly lastHeartbeatMs: number;
}

export interface JobBeat {
  readonly jobId: string;
  readonly attempt: number;
  /** The newest report to record; left out: no change. */
  readonly progressJson?: string;
}

export interface HeartbeatAnswer {
  /** Of the jobs named: those that a user asked to cancel. */
  readonly cancelRequested: readonly string[];
  /** Of the jobs named: those that are no longer this worker's. */
  readonly lost: readonly string[];
}

export type CancelOutcome =
  /** It was waiting and has ended now. */
  | { readonly kind: "cancelled"; readonly job: Job }
  /** It is running; its owner was told and will record the end. */
  | { readonly kind: "requested"; readonly job: Job }
  /** It had ended before. */
  | { readonly kind: "terminal"; readonly job: Job }
  | { readonly kind: "unknown" };

export interface JobResult {
  readonly job: Job;
  readonly resultJson: string | null;
}

export interface ListQuery {
  readonly statuses?: readonly Status[];
  readonly task?: string;
  /** The jobs of this plan (26-character ULID). */
  readonly planId?: string;
  /** 1 to 1000. */
  readonly limit: number;
  /** `nextCursor` of the page before. */
  readonly cursor?: string;
}

export interface JobPage {
  readonly jobs: Job[];
  readonly nextCursor?: string;
}

export interface Counts {
  readonly queued: number;
  readonly running: number;
  /** All records, the terminal included. */
  readonly total: number;
  /** Age of the longest-waiting queued job that is due, in ms; null when none waits. */
  readonly oldestQueuedMs: number | null;
}

export interface InspectLimit {
  /** A running job whose own last beat is older than this is stuck. */
  readonly jobTimeoutMs: number;
  /** So is one whose worker has not beaten for this long. */
  readonly workerTimeoutMs: number;
  readonly chunk: number;
}

export interface LedgerReport {
  /** By the ledger's own clock. */
  readonly nowMs: number;
  /** `memory`, or the database's name and version: `SQLite 3.50.1`. */
  readonly software: string;
  /** The number of the last migration; null where there are none. */
  readonly schemaVersion: number | null;
  readonly counts: Counts;
  readonly workers: readonly WorkerRecord[];
  /** The queued job that has been due for longest; null where none is due. */
  readonly oldestQueued: Job | null;
  /** Running jobs that the next rescue would find. */
  readonly stuck: readonly Job[];
  /** How many jobs of each task are queued, the most first. */
  readonly waiting: readonly { readonly task: string; readonly queued: number }[];
}

export interface RejectLimit {
  /** The worker that asks. It may have been paused since it decided to, and be taken for lost. */
  readonly workerId: string;
  readonly graceMs: number;
  /** A worker without a beat for this long does not count as living. */
  readonly workerTimeoutMs: number;
  readonly chunk: number;
}

export interface RescueLimit {
  /** A running job whose own last beat is older than this is stuck. */
  readonly jobTimeoutMs: number;
  /** So is one whose worker has not beaten for this long. */
  readonly workerTimeoutMs: number;
  /** Workers that are known to be gone, however recent their beat. */
  readonly goneWorkerIds: readonly string[];
  readonly chunk: number;
}

export interface RescuedJob {
  readonly jobId: string;
  readonly workerId: string;
  readonly status: Status;
}

export interface EvictLimit {
  readonly ttlMs: number;
  /** Most terminal jobs to keep. */
  readonly keep: number;
  readonly chunk: number;
}

/** The message of a job whose worker was lost; operators and tests look for these words. */
export const STUCK_MESSAGE = "WorkerLost: Heartbeat timeout — job stuck";
/** The message of a job that waited for a worker longer than allowed. */
export const WAIT_TIMEOUT_MESSAGE = "WaitTimeout: worker wait timeout";
