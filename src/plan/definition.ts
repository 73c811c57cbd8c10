/**
 * A plan as it was read and checked: what a phase runs. It is recorded with each run as JSON, so that
 * editing the file disturbs nothing that was asked for before. Times are in ms.
 */
import type { Phase } from "../job/job.js";

/** Variables whose names begin so are taken out of what steps find, and none of them can be set. */
export const RESERVED_VARIABLES = ["JOBTABLE_", "CLEVERAGENTS_", "GIT_"] as const;

export interface PlanDefinition {
  readonly name: string;
  /** Absolute path of the root of a git repository's working tree. */
  readonly workspace: string;
  /** What a sandbox starts from: the last commit, or the files as they lie there (ignored ones apart). */
  readonly base: "head" | "working-tree";
  /** For all steps. */
  readonly env: Readonly<Record<string, string>>;
  /** Of a phase; null: none of its own. */
  readonly timeoutMs: number | null;
  readonly execute: readonly StepDefinition[];
  /** May be empty: then apply only puts the patch on the workspace. */
  readonly apply: readonly StepDefinition[];
}

export type StepDefinition = CommandStep | TaskStep;

interface AnyStep {
  /** Names its outputs for later steps; null: nobody asks for them. Unique within a phase. */
  readonly id: string | null;
  /** For people; never empty. */
  readonly name: string;
  readonly timeoutMs: number | null;
  readonly continueOnError: boolean;
}

export interface CommandStep extends AnyStep {
  readonly kind: "command";
  readonly run: string;
  /** A program and its arguments; the command is added as the last one. */
  readonly shell: readonly string[];
  /** Relative to the root of the working tree; stays inside it. May hold expressions. */
  readonly cwd: string;
  /** Over the plan's. Values may hold expressions. */
  readonly env: Readonly<Record<string, string>>;
}

export interface TaskStep extends AnyStep {
  readonly kind: "task";
  readonly task: string;
  /** Any JSON value; texts in it may hold expressions. */
  readonly input: unknown;
}

export function stepsOf(plan: PlanDefinition, phase: Phase): readonly StepDefinition[] {
  return plan[phase];
}
