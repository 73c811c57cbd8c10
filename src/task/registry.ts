/** The tasks that this process knows, by name, and the check of their inputs. */
import { invalidTask, sourceOf } from "./invalid-task.js";
import { checkSchema, inputJsonSchema, type InputIssue } from "./schema.js";
import type { Isolation, TaskOptions } from "./task.js";

export interface RegisteredTask {
  readonly name: string;
  readonly description: string | null;
  readonly isolation: Isolation;
  /** Limit of one run in ms, or null for the setting's. */
  readonly timeoutMs: number | null;
  /** How long a run may go on after it was told to stop, ms. Null or left out: as long as the setting says. */
  readonly graceMs?: number | null;
  readonly maxAttempts: number;
  /** Of the inputs that it takes; recorded with each job. */
  readonly version: number;
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

/**
 * @throws JobtableError `invalid_task` when two tasks have one name; both places are named.
 */
export function createTaskRegistry(tasks: readonly RegisteredTask[]): TaskRegistry {
  const byName = new Map<string, RegisteredTask>();
  for (const task of tasks) {
    const other = byName.get(task.name);
    if (other !== undefined) throw duplicate(other, task);
    byName.set(task.name, task);
  }
  return {
    names: [...byName.keys()],
    get: (name) => byName.get(name),
    checkInput: (task, input) => checkSchema(task.definition.input, input),
    inputJsonSchema: (task) => inputJsonSchema(task.definition.input),
  };
}

/**
 * A registry with more tasks in it.
 * @throws JobtableError as `createTaskRegistry`.
 */
export function withTasks(tasks: TaskRegistry, more: readonly RegisteredTask[]): TaskRegistry {
  if (more.length === 0) return tasks;
  const present = tasks.names.map((name) => tasks.get(name)).filter((task) => task !== undefined);
  return createTaskRegistry([...present, ...more]);
}

function duplicate(one: RegisteredTask, other: RegisteredTask): Error {
  return invalidTask(
    `two tasks are named "${one.name}": ${sourceOf(one.file)} and ${sourceOf(other.file)}; give one of them another name`,
  );
}
