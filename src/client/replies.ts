/**
 * What the API answers, as types: the JSON of docs/http.md, field for field. Fields may be added to
 * any of these by a newer server.
 */
import { statusOf, type State } from "../http/wire.js";
import { isTerminal, type Status } from "../job/state.js";

/** `GET /jobs/{id}`. Times are ISO 8601, UTC. */
export interface JobView {
  readonly job_id: string;
  readonly state: State;
  /** From submission to now, or to its end. */
  readonly elapsed_ms: number;
  readonly status: Status;
  readonly task: string;
  readonly attempt: number;
  readonly max_attempts: number;
  readonly priority: number;
  readonly created_at: string;
  readonly started_at?: string;
  readonly finished_at?: string;
  readonly worker_id?: string;
  readonly last_heartbeat?: string;
  readonly req_id?: string;
  readonly idempotency_key?: string;
  readonly cancel_requested?: boolean;
  /** How it failed. */
  readonly error?: string;
  /** How the last attempt of a job that goes on failed. */
  readonly reason?: string;
  /** Of attempts that were queued again, oldest first. */
  readonly attempt_errors?: readonly AttemptErrorView[];
  readonly progress?: unknown;
}

/** Whether its state is one that it will not leave: `done`, `failed`, `timeout` or `cancelled`. */
export function hasEnded({ state }: Pick<JobView, "state">): boolean {
  const status = statusOf(state);
  return status !== undefined && isTerminal(status);
}

export interface AttemptErrorView {
  readonly attempt: number;
  readonly worker_id: string;
  readonly at: string;
  readonly error: string;
}

export interface JobPageView {
  readonly jobs: readonly JobView[];
  readonly next_cursor?: string;
}

/** `GET /diagnostics`. */
export interface DiagnosticsView {
  /** No problems. */
  readonly ok: boolean;
  readonly problems: readonly {
    /** One word for machines, such as `no_worker`. */
    readonly kind: string;
    /** One line: what is wrong, and what to do. */
    readonly message: string;
  }[];
  readonly async: {
    readonly enabled: boolean;
    readonly max_workers: number;
    readonly poll_interval_ms: number;
  };
  readonly ledger: {
    readonly kind: string;
    readonly software: string;
    readonly schema_version: number | null;
    readonly latency_ms: number;
    readonly now: string;
  };
  readonly depth: {
    readonly queued: number;
    readonly running: number;
    readonly total: number;
    readonly limit: number;
    readonly oldest_queued_ms: number | null;
  };
  readonly oldest_queued: {
    readonly job_id: string;
    readonly task: string;
    readonly waited_ms: number;
  } | null;
  readonly workers: readonly WorkerView[];
  /** Running jobs whose owner seems to be gone. */
  readonly stuck: readonly {
    readonly job_id: string;
    readonly task: string;
    readonly worker_id: string | null;
    readonly last_heartbeat: string | null;
  }[];
  /** Tasks with waiting jobs that no living worker runs. */
  readonly unserved: readonly { readonly task: string; readonly queued: number }[];
}

export interface WorkerView {
  readonly worker_id: string;
  readonly state: "running" | "draining" | "lost";
  readonly processed: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly started_at: string;
  readonly last_heartbeat: string;
  readonly max_workers: number;
  readonly tasks: readonly string[];
  readonly host: string;
  readonly pid: number;
}

/** A request that was understood and not followed. */
export interface Refused {
  readonly kind: "refused";
  /** The HTTP status that says why: 422 invalid, 429 full, 409 in conflict with the job's state, ... */
  readonly status: number;
  /** One line: what was wrong. */
  readonly message: string;
  /** When to come back; null where that would not help. */
  readonly retryAfterS: number | null;
}

/** @param body of a job endpoint's error: `{"error", "detail"?, "known"?, "reason"?}`. */
export function refusedFrom(
  status: number,
  body: Readonly<Record<string, unknown>>,
  retryAfterS: number | null,
): Refused {
  const { error, detail, known, reason } = body;
  // What is said beside an unknown task is about the body of an HTTP request.
  const more =
    typeof error === "string" && error.startsWith("unknown task") ? [] : [detail, reason];
  const parts = [error, ...more].filter((part) => typeof part === "string");
  const names = Array.isArray(known) && known.length > 0 ? `; known: ${known.join(", ")}` : "";
  return { kind: "refused", status, message: parts.join(": ") + names, retryAfterS };
}
