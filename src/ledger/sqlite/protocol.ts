/**
 * What the ledger (main thread) and its database thread say to each other. A message carries the
 * operations of many calls and is answered by one message with as many answers, in the same order;
 * messages are answered in the order in which they came. Rows travel as plain arrays of cells: they
 * are copied between threads, and objects would cost more than the database does.
 */
import type { ErrorCode } from "../../job/errors.js";
import type { Status } from "../../job/state.js";
import type { PlanAnswers, PlanOperation } from "./plan-protocol.js";

export type Cell = string | number | null;
export type Row = Cell[];

export type LedgerCode = Extract<ErrorCode, `ledger_${string}`>;

/** Each row of `jobs` has the columns of `SUBMITTED_COLUMNS`. */
interface Submit {
  readonly verb: "submit";
  readonly maxDepth: number;
  /** All or none; left out: each for itself. */
  readonly whole?: true;
  readonly jobs: readonly Row[];
}
interface Claim {
  readonly verb: "claim";
  readonly workerId: string;
  readonly tasks: readonly string[];
  readonly limit: number;
}
export type SettleEvent = "succeed" | "fail" | "time_out" | "stop" | "retry" | "release";
/** `text` is the result, the error message, or null; `ms` for a retry its pause, for a release when its claim was made. */
export type SettledJob = readonly [
  jobId: string,
  workerId: string,
  attempt: number,
  event: SettleEvent,
  text: string | null,
  ms: number | null,
];
interface Settle {
  readonly verb: "settle";
  readonly ends: readonly SettledJob[];
}
/** `worker` has the columns of async_workers up to `cancelled`; each of `jobs`: id, attempt, progress or null. */
interface Heartbeat {
  readonly verb: "heartbeat";
  readonly workerId: string;
  readonly worker: Row;
  readonly jobs: readonly (readonly [
    jobId: string,
    attempt: number,
    progressJson: string | null,
  ])[];
}
interface Leave {
  readonly verb: "leave";
  readonly workerId: string;
}
interface OfJobs<V extends "cancel" | "get" | "look"> {
  readonly verb: V;
  readonly jobIds: readonly string[];
}
interface Recent {
  readonly verb: "recent";
  readonly limit: number;
}
interface OfJob<V extends "result" | "payload"> {
  readonly verb: V;
  readonly jobId: string;
}
interface List {
  readonly verb: "list";
  /** Null: all. */
  readonly statuses: readonly string[] | null;
  readonly task: string | null;
  readonly planId: string | null;
  readonly limit: number;
  readonly cursor: string | null;
}
interface Plain<V extends "counts" | "workers"> {
  readonly verb: V;
}
interface Expire {
  readonly verb: "expire";
  readonly waitLimitMs: number;
  readonly chunk: number;
}
interface Reject {
  readonly verb: "reject";
  readonly workerId: string;
  readonly graceMs: number;
  readonly workerTimeoutMs: number;
  readonly chunk: number;
}
interface Rescue {
  readonly verb: "rescue";
  readonly jobTimeoutMs: number;
  readonly workerTimeoutMs: number;
  readonly goneWorkerIds: readonly string[];
  readonly chunk: number;
}
interface Inspect {
  readonly verb: "inspect";
  readonly jobTimeoutMs: number;
  readonly workerTimeoutMs: number;
  readonly chunk: number;
}
interface Evict {
  readonly verb: "evict";
  readonly ttlMs: number;
  readonly keep: number;
  readonly chunk: number;
}

export type Operation =
  | Submit
  | Claim
  | Settle
  | Heartbeat
  | Leave
  | OfJobs<"cancel">
  | OfJobs<"get">
  | OfJobs<"look">
  | Recent
  | OfJob<"result">
  | OfJob<"payload">
  | List
  | Plain<"counts">
  | Plain<"workers">
  | Expire
  | Reject
  | Rescue
  | Inspect
  | Evict
  | PlanOperation;

export type Verb = Operation["verb"];
export type OperationOf<V extends Verb> = Extract<Operation, { readonly verb: V }>;

/** What each verb is answered with. */
export interface Answers extends PlanAnswers {
  /**
   * Null: all were admitted. Else `others` are answered with a job that has their key already: its
   * row, or the place of one of the same call. Of the rest the first `admitted` were admitted, and
   * those after them met a depth of `depth`.
   */
  submit: {
    readonly admitted: number;
    readonly depth: number;
    readonly others: readonly (readonly [
      place: number,
      kind: "repeated" | "conflict",
      of: Row | number,
    ])[];
  } | null;
  /** For each job a JSON array of CLAIMED_COLUMNS, then its payload; in no order. */
  claim: readonly Cell[];
  /** Null: each happened, and led where its event leads. Else the status of each, null: it did not happen. */
  settle: readonly (Status | null)[] | null;
  heartbeat: { readonly cancelRequested: string[]; readonly lost: string[] };
  leave: null;
  cancel: readonly {
    readonly kind: "cancelled" | "requested" | "terminal" | "unknown";
    readonly job: Row;
  }[];
  get: readonly (Row | null)[];
  /** One number for each job that differs when what watchers can see of it differs; -1: unknown. */
  look: readonly number[];
  /** Ids and such numbers in turn, of those that have ended since the last time, and of those that run; and whether any were forgotten since. */
  recent: {
    readonly ended: readonly Cell[];
    readonly running: readonly Cell[];
    readonly forgotten: boolean;
  } | null;
  /** Job columns, then the result. */
  result: Row | null;
  payload: string | null;
  list: { readonly jobs: readonly Row[]; readonly nextCursor: string | null };
  counts: CountsAnswer;
  workers: readonly Row[];
  inspect: {
    readonly software: string;
    readonly schemaVersion: number;
    readonly counts: CountsAnswer;
    readonly workers: readonly Row[];
    readonly oldest: Row | null;
    readonly stuck: readonly Row[];
    readonly waiting: readonly (readonly [task: string, queued: number])[];
  };
  /** The jobs' ids, here and in the next one. */
  expire: readonly string[];
  reject: readonly string[];
  /** Id, worker, status. */
  rescue: readonly (readonly [jobId: string, workerId: string, status: string])[];
  /** `more`: it stopped short of the chunk, since what was forgotten is large. */
  evict: { readonly jobIds: readonly string[]; readonly more: boolean };
}

export interface CountsAnswer {
  readonly queued: number;
  readonly running: number;
  readonly terminal: number;
  /** When the longest-waiting queued job became (or becomes) due. */
  readonly oldestRunAt: string | null;
}

/** `code` null: not the ledger's state but the call itself was at fault, which is a bug. */
export interface Failure {
  readonly failed: true;
  readonly code: LedgerCode | null;
  readonly detail: string;
}
export type Outcome = { readonly failed: false; readonly answer: Answers[Verb] } | Failure;

export interface Batch {
  /** The ledger's time for all operations of the batch. */
  readonly nowMs: number;
  readonly operations: readonly Operation[];
}
/** The cells of a column, or the one that all rows have in it. */
export type Column = Cell | readonly Cell[];

export interface PackedSubmit extends Omit<Submit, "jobs"> {
  readonly count: number;
  readonly columns: readonly Column[];
}

/** A batch as it crosses; see packing.ts. */
export interface PackedBatch {
  readonly kind: "batch";
  readonly nowMs: number;
  readonly operations: readonly (Exclude<Operation, Submit> | PackedSubmit)[];
}

/** The outcomes of a batch as they cross. */
export interface PackedOutcomes {
  readonly kind: "outcomes";
  readonly answers: readonly Answers[Verb][];
  /** By the place of the operation in its batch. */
  readonly failures: readonly (readonly [place: number, failure: Failure])[];
}

export type ToThread = PackedBatch | { readonly kind: "close" };

export type FromThread =
  | { readonly kind: "opened" }
  /** It could not open, and ends. */
  | { readonly kind: "refused"; readonly failure: Failure }
  | PackedOutcomes
  /** Another connection changed something. `look`: jobs may differ. `work`: jobs wait. */
  | { readonly kind: "foreign"; readonly look: boolean; readonly work: boolean }
  | { readonly kind: "closed" };

/** What the thread is started with. */
export interface LedgerThreadData {
  readonly path: string;
  /** Whether a database that is no ledger is made one. */
  readonly create: boolean;
  /** The ledger's time at the start; later ones come with the batches. */
  readonly nowMs: number;
}
