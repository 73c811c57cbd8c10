/**
 * From what a user wrote to a `RegisteredTask`: shapes, defaults and the check of every option. An
 * option that is not known is an error, since a misspelt `timeout` is a task without a limit.
 * Each error is one line: which task, where, which option, what it got, what it takes.
 */
import { parseDuration } from "../job/duration.js";
import type { JobtableError } from "../job/errors.js";
import { MAX_ATTEMPTS, TASK_NAME } from "../job/limits.js";
import { invalidTask, sourceOf } from "./invalid-task.js";
import type { RegisteredTask } from "./registry.js";
import type { Isolation, TaskOptions } from "./task.js";

/** A task as it may be written: options, or the handler alone. */
export type TaskLike = TaskOptions | TaskOptions["run"];

export interface TaskSource {
  /** The absolute path of its file; null for one given to the library. */
  readonly file: string | null;
  /** The name of a task that names itself nothing; null: it must. */
  readonly defaultName: string | null;
}

const OPTIONS = [
  "name",
  "description",
  "input",
  "output",
  "timeout",
  "isolation",
  "maxAttempts",
  "run",
] as const satisfies readonly (keyof TaskOptions)[];

/** @throws JobtableError `invalid_task`, one line. */
export function defineTask(written: unknown, source: TaskSource): RegisteredTask {
  const definition = asOptions(written, source);
  const name = readName(definition, source);
  const at = `task "${name}" (${sourceOf(source.file)})`;
  checkOptions(definition, at);
  return {
    name,
    description: definition.description ?? null,
    isolation: readIsolation(definition, source, at),
    timeoutMs: readTimeout(definition, at),
    maxAttempts: readMaxAttempts(definition, at),
    file: source.file,
    definition,
  };
}

/**
 * The tasks that a program gives to the library: a list of named tasks, or tasks and functions by
 * name. They run in this process unless they say otherwise, which only a task file can.
 * @throws JobtableError `invalid_task`, one line.
 */
export function defineInline(
  tasks: readonly TaskOptions[] | Readonly<Record<string, TaskLike>>,
): RegisteredTask[] {
  if (Array.isArray(tasks))
    return tasks.map((task: unknown) => defineTask(task, { file: null, defaultName: null }));
  return Object.entries(tasks).map(([defaultName, task]) =>
    defineTask(task, { file: null, defaultName }),
  );
}

function asOptions(written: unknown, source: TaskSource): TaskOptions {
  if (typeof written === "function") return { run: written as TaskOptions["run"] };
  if (hasRun(written)) return written;
  const got = shown(written);
  throw invalidTask(
    source.file === null
      ? `task ${source.defaultName ?? ""}: expected task({ run }) or a function, got ${got}`
      : `${source.file}: the default export must be task({ run }), an object with run, or a function, got ${got}`,
  );
}

function hasRun(written: unknown): written is TaskOptions {
  return (
    typeof written === "object" &&
    written !== null &&
    "run" in written &&
    typeof written.run === "function"
  );
}

function readName(definition: TaskOptions, source: TaskSource): string {
  const written: unknown = definition.name;
  const name = written ?? source.defaultName;
  if (name === null)
    throw invalidTask('a task given to the library needs a name: task({ name: "ocr", run })');
  if (typeof name === "string" && TASK_NAME.test(name)) return name;
  const rule = 'letters, digits, "_", "-" and "." (first a letter or digit), at most 100';
  throw invalidTask(
    written === undefined
      ? `${sourceOf(source.file)}: ${shown(name)} can't be a task's name (${rule}); rename it, or set the option name`
      : `${sourceOf(source.file)}: option name: expected ${rule}, got ${shown(name)}`,
  );
}

function checkOptions(definition: TaskOptions, at: string): void {
  const known: readonly string[] = OPTIONS;
  const unknown = Object.keys(definition).find((key) => !known.includes(key));
  if (unknown !== undefined)
    throw invalidTask(`${at}: unknown option "${unknown}"; known: ${known.join(", ")}`);
  const description: unknown = definition.description;
  if (description !== undefined && typeof description !== "string")
    throw wrongOption(at, "description", "text", description);
  for (const option of ["input", "output"] as const) {
    const schema: unknown = definition[option];
    if (schema !== undefined && !isStandardSchema(schema))
      throw wrongOption(at, option, "a Standard Schema (zod, valibot, arktype, ...)", schema);
  }
}

function readIsolation(definition: TaskOptions, source: TaskSource, at: string): Isolation {
  const isolation: unknown = definition.isolation;
  if (isolation === undefined) return source.file === null ? "inline" : "thread";
  if (isolation !== "thread" && isolation !== "inline")
    throw wrongOption(at, "isolation", '"thread" or "inline"', isolation);
  if (isolation === "thread" && source.file === null)
    throw invalidTask(
      `${at}: option isolation: "thread" needs a task file, which a thread can load; a function can only run "inline"`,
    );
  return isolation;
}

function readTimeout(definition: TaskOptions, at: string): number | null {
  const timeout: unknown = definition.timeout;
  if (timeout === undefined) return null;
  const ms =
    typeof timeout === "number" || typeof timeout === "string"
      ? parseDuration(timeout, "ms")
      : undefined;
  if (ms === undefined || ms === 0)
    throw wrongOption(
      at,
      "timeout",
      'ms above 0, or text such as "250ms", "30s", "5m", "1h"',
      timeout,
    );
  return ms;
}

function readMaxAttempts(definition: TaskOptions, at: string): number {
  const attempts: unknown = definition.maxAttempts ?? 1;
  if (typeof attempts === "number" && Number.isInteger(attempts))
    if (attempts >= 1 && attempts <= MAX_ATTEMPTS) return attempts;
  throw wrongOption(
    at,
    "maxAttempts",
    `a whole number from 1 to ${String(MAX_ATTEMPTS)}`,
    attempts,
  );
}

function isStandardSchema(value: unknown): boolean {
  // Some libraries' schemas are functions (arktype).
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  const standard: unknown = Reflect.get(value, "~standard");
  if (typeof standard !== "object" || standard === null) return false;
  return "validate" in standard && typeof standard.validate === "function";
}

function wrongOption(at: string, option: string, expected: string, got: unknown): JobtableError {
  return invalidTask(`${at}: option ${option}: expected ${expected}, got ${shown(got)}`);
}

/** A value for a message: short, one line, and with its type where that says more. */
function shown(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null || typeof value === "boolean" || typeof value === "number")
    return String(value);
  if (typeof value === "string") return JSON.stringify(value.slice(0, 120));
  return Array.isArray(value)
    ? "an array"
    : `${typeof value === "object" ? "an" : "a"} ${typeof value}`;
}
