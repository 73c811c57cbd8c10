/** What running steps takes and gives. Times are in ms. */
import type { Phase } from "../../job/job.js";
import type { Clock } from "../../runtime/clock.js";
import type { Logger } from "../../runtime/logger.js";
import type { StepDefinition } from "../definition.js";
import type { OutputStream, StepLog } from "./step-log.js";

export interface StepsRequest {
  /** Of one phase, in order; as `parsePlan` checked them. */
  readonly steps: readonly StepDefinition[];
  readonly plan: StepsPlan;
  /** Absolute path of the tree that they work in. */
  readonly dir: string;
  /** What commands inherit; credentials of the worker are taken out of it. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Aborted when the run shall end: the step under way is stopped, the others are skipped. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Between SIGTERM and SIGKILL. */
  readonly graceMs: number;
  readonly tasks: TaskPort;
  readonly listener: StepsListener;
  /** An existing folder outside of `dir`, for FIFOs that are gone when the command begins. */
  readonly scratch: string;
}

export interface StepsPlan {
  readonly name: string;
  readonly phase: Phase;
  /** Below that of the steps; values may hold expressions. */
  readonly env: Readonly<Record<string, string>>;
}

/** Runs a task as part of a step. What it rejects with fails the step. */
export interface TaskPort {
  run(task: string, input: unknown, options: TaskRunOptions): Promise<TaskRunEnding>;
}

export interface TaskRunOptions {
  readonly signal: AbortSignal;
  /** Of the step; null: none of its own. */
  readonly timeoutMs: number | null;
}

export type TaskRunEnding =
  | { readonly kind: "succeeded"; readonly resultJson: string }
  /** `ErrorType: message`. */
  | { readonly kind: "failed" | "timed_out"; readonly errorMessage: string }
  | { readonly kind: "cancelled" }
  | { readonly kind: "unknown_task"; readonly known: readonly string[] };

/** Nobody waits for what these do: a slow one slows no step. They must not throw. */
export interface StepsListener {
  stepStarted(step: StartedStep): void;
  /**
   * As the command wrote it, in pieces of any size: bytes that may not be UTF-8, or half a character.
   * @param log has them, and goes on.
   */
  stepWrote(step: StartedStep, stream: OutputStream, bytes: Uint8Array, log: StepLog): void;
  /** Once for each step, in order; also for those that were skipped, which never started. */
  stepEnded(step: EndedStep): void;
}

export interface StartedStep {
  /** Place in the phase, from 0. */
  readonly index: number;
  readonly id: string | null;
  readonly name: string;
  readonly kind: StepDefinition["kind"];
  readonly startedAtMs: number;
}

export type StepState = "succeeded" | "failed" | "timed_out" | "cancelled" | "skipped";

export interface EndedStep extends Omit<StartedStep, "startedAtMs"> {
  readonly state: StepState;
  /** Of a command that ended by itself or was stopped; null where a signal ended it, and of tasks. */
  readonly exitCode: number | null;
  /** Its name, `SIGTERM`. */
  readonly signal: string | null;
  /** Null where it was skipped. */
  readonly startedAtMs: number | null;
  readonly finishedAtMs: number | null;
  /** `ErrorType: message`; null unless it failed or timed out. */
  readonly errorMessage: string | null;
  /** What it wrote, bounded (step-log.ts); empty for tasks. */
  readonly log: string;
  /** What it wrote in all. */
  readonly logBytes: number;
}

export type StepsEnding =
  /** All ran; those with `continueOnError` may have failed. */
  | { readonly kind: "succeeded" }
  /** `step` failed or timed out, and the others were skipped. `errorMessage` names it: `StepFailed: ...`. */
  | { readonly kind: "failed"; readonly step: EndedStep; readonly errorMessage: string }
  /** The signal was aborted, or a task was cancelled. */
  | { readonly kind: "cancelled" };
