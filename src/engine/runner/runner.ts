/**
 * Where a task's code runs. A runner takes one request at a time per `start` call, holds no queue
 * and knows no ledger: whoever calls it has a free slot, and decides what an outcome means for the
 * job. What a handler does (throws, hangs, exits, never settles) is an outcome, never an exception.
 */
import type { LogFields } from "../../runtime/logger.js";
import type { RegisteredTask } from "../../task/registry.js";
import type { ReportLevel } from "../../task/reports.js";

export interface RunRequest {
  /** The job's 26-character ULID; null for a synchronous request. */
  readonly jobId: string | null;
  /** From 1. */
  readonly attempt: number;
  readonly task: RegisteredTask;
  /** The payload exactly as the ledger has it (job/payload.ts); it is parsed where the task runs. */
  readonly payloadJson: string;
  readonly requestId: string | null;
}

/** What a run reports on its way. Calls must not throw; none comes after the outcome. */
export interface RunReports {
  /** Well-formed JSON of at most MAX_PROGRESS_BYTES; coalesced, the newest wins. */
  onProgress(progressJson: string): void;
  /** Bounded in size and rate. */
  onLog(level: ReportLevel, message: string, fields: LogFields): void;
}

/** Whoever started a run. A call rather than a promise: for a tiny run, promises are what costs. */
export interface RunListener extends RunReports {
  /** The handler has gone, or was given up. Once, after all reports, and never within `start` or `kill`. Must not throw. */
  onOutcome(outcome: RunOutcome): void;
}

export type RunOutcome =
  | { readonly kind: "succeeded"; readonly resultJson: string }
  | {
      readonly kind: "failed";
      /** `ErrorType: message`, storable by every ledger and at most MAX_ERROR_CHARS. */
      readonly errorMessage: string;
      /** What the handler asked for: nothing, never again, or again after a pause of its own choice. */
      readonly retry: "default" | "never" | { readonly afterMs: number };
    }
  /** Its thread was terminated by `kill`. */
  | { readonly kind: "killed" }
  /** An inline run that `kill` gave up; it may still be running, and its late end is ignored. */
  | { readonly kind: "abandoned" };

export interface Run {
  /** Sets `ctx.signal`; its reason says why. Only the first call counts; after the end it does nothing. */
  abort(reason: string): void;
  /** Ends it for good: terminates the thread, or gives the inline run up. Its outcome then comes. After the end it does nothing. */
  kill(): void;
}

export interface Runner {
  start(request: RunRequest, listener: RunListener): Run;
  /** Ends idle threads and waits until none is left; runs under way are waited for. Idempotent. */
  close(): Promise<void>;
}
