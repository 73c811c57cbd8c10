/**
 * What a job becomes when its handler has gone: from the run's outcome, and what it was told
 * meanwhile. Pure. In order of strength: a claim that was lost records nothing; a user's cancel
 * always wins; then the time limit; then what the handler did; and a run that a shutdown ended goes
 * back to the queue while attempts are left.
 */
import { delayWithoutJitter, withJitter } from "../job/retry.js";
import { isTerminal, type Status, type TerminalStatus } from "../job/state.js";
import type { End } from "../ledger/ledger.js";
import type { RunOutcome } from "./runner/runner.js";

/** Why a run was told to stop. */
export type StopCause =
  "cancelled" | "lost" | "time_limit" | "shutdown" | "caller_gone" | "caller_stopped";

export interface EndedRun {
  readonly outcome: RunOutcome;
  readonly causes: ReadonlySet<StopCause>;
  readonly attempt: number;
  readonly maxAttempts: number;
  /** The limit that held for this run, ms. */
  readonly limitMs: number;
  /** Uniform in [0, 1). */
  readonly unit: number;
}

const SHUTDOWN_MESSAGE = "Shutdown: the worker stopped before the job ended";
export const GONE_MESSAGE = "RunnerGone: the task's thread ended without an outcome";

/** @returns null when the claim was lost: there is nothing to record. */
export function endOf(run: EndedRun): End | null {
  const { outcome, causes } = run;
  if (causes.has("lost")) return null;
  if (causes.has("cancelled")) return { event: "stop" };
  if (causes.has("time_limit"))
    return { event: "time_out", errorMessage: timeLimitMessage(run.limitMs) };
  switch (outcome.kind) {
    case "succeeded":
      return { event: "succeed", resultJson: outcome.resultJson };
    case "failed":
      if (outcome.retry === "never") return { event: "fail", errorMessage: outcome.errorMessage };
      return causes.has("shutdown")
        ? interrupted(run)
        : failedOrRetried(run, outcome.errorMessage, outcome.retry);
    case "killed":
    case "abandoned":
      return causes.has("shutdown")
        ? interrupted(run)
        : failedOrRetried(run, GONE_MESSAGE, "default");
    default:
      return outcome satisfies never;
  }
}

export function timeLimitMessage(limitMs: number): string {
  return `TimeLimit: exceeded ${String(limitMs)} ms`;
}

function interrupted({ attempt, maxAttempts }: EndedRun): End {
  return attempt < maxAttempts
    ? { event: "retry", errorMessage: SHUTDOWN_MESSAGE, delayMs: 0 }
    : { event: "stop" };
}

function failedOrRetried(
  { attempt, maxAttempts, unit }: EndedRun,
  errorMessage: string,
  wish: "default" | { readonly afterMs: number },
): End {
  if (attempt >= maxAttempts) return { event: "fail", errorMessage };
  const delayMs = wish === "default" ? withJitter(delayWithoutJitter(attempt), unit) : wish.afterMs;
  return { event: "retry", errorMessage, delayMs };
}

/** What observers and the log call an end. */
export type EndLabel = TerminalStatus | "retried" | "released";

/** @param status that the ledger recorded for it. */
export function endLabel({ event }: End, status: Status): EndLabel {
  if (isTerminal(status)) return status;
  return event === "release" ? "released" : "retried";
}
