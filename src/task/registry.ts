/** The tasks that this process knows, by name, and the check of their inputs. */
import type { InputIssue } from "./schema.js";
import type { Isolation, TaskOptions } from "./task.js";

export interface RegisteredTask {
  readonly name: string;
  readonly description: string | null;
  readonly isolation: Isolation;
  /** Limit of one run in ms, or null for the setting's. */
  readonly timeoutMs: number | null;
  readonly maxAttempts: number;
  /** The file it came from, which threads load again; null for a function given to the library. */
  readonly file: string | null;
  readonly definition: TaskOptions;
}

export type InputCheck =
  | { readonly kind: "valid"; readonly value: unknown }
  | { readonly kind: "invalid"; readonly empty: boolean; readonly issues: readonly InputIssue[] };

export interface TaskRegistry {
  readonly names: readonly string[];
  get(name: string): RegisteredTask | undefined;
  /** Runs the task's input schema; without one everything is valid. */
  checkInput(task: RegisteredTask, input: unknown): Promise<InputCheck> | InputCheck;
  /** JSON Schema (draft 2020-12) of the input, for OpenAPI; `{}` where the schema can't say. */
  inputJsonSchema(task: RegisteredTask): Record<string, unknown>;
}
