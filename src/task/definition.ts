/**
 * From what a user wrote to a `RegisteredTask`: shapes, defaults and the check of every option. An
 * option that is not known is an error, since a misspelt `timeout` is a task without a limit.
 * Each error is one line: which task, where, which option, what it got, what it takes.
 */
import { parseDuration } from "../job/duration.js";
import type { JobtableError } from "../job/errors.js";
import { MAX_ATTEMPTS, TASK_NAME } from "../job/limits.js";
import { MAX_VERSION } from "../job/payload.js";
import { invalidTask, sourceOf } from "./invalid-task.js";
import type { RegisteredTask } from "./registry.js";
import type { Isolation, TaskOptions } from "./task.js";
import { versionOf } from "./upgrade.js";

/** A task as it may be written: options, or the handler alone. */
export type TaskLike = TaskOptions | TaskOptions["run"];

export interface TaskSource {
  /** The absolute path of its file; null for one given to the library. */
  readonly file: string | null;
  /** The name of a task that names itself nothing; null: it must. */
  readonly defaultName: string | null;
  /** Holds whatever the task says. */
  readonly isolation?: Isolation;
}

const OPTIONS = [
  "name",
  "description",
  "input",
  "output",
  "timeout",
  "isolation",
  "maxAttempts",
  "version",
  "upgrade",
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
    version: readVersion(definition, at),
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

/** Named tasks for a test of the program that uses them: all run in this process, whatever they say. @throws as `defineInline`. */
export function defineForTest(tasks: readonly TaskOptions[]): RegisteredTask[] {
  return tasks.map((task: unknown) =>
    defineTask(task, { file: null, defaultName: null, isolation: "inline" }),
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
  if (source.isolation !== undefined) return source.isolation;
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
  return readCount("maxAttempts", definition.maxAttempts ?? 1, MAX_ATTEMPTS, at);
}

function readCount(option: keyof TaskOptions, count: unknown, most: number, at: string): number {
  if (typeof count === "number" && Number.isInteger(count))
    if (count >= 1 && count <= most) return count;
  throw wrongOption(at, option, `a whole number from 1 to ${String(most)}`, count);
}

/** Raising the version without an upgrader is the slip that this finds; the oldest ones may be dropped. */
function readVersion(definition: TaskOptions, at: string): number {
  const version = readCount("version", versionOf(definition), MAX_VERSION, at);
  const upgrade: unknown = definition.upgrade ?? {};
  if (typeof upgrade !== "object" || upgrade === null || Array.isArray(upgrade))
    throw wrongOption(at, "upgrade", "functions by the version that each takes", upgrade);
  const versions = Object.keys(upgrade);
  for (const [from, upgrader] of Object.entries(upgrade) as [string, unknown][]) {
    if (!/^[1-9]\d*$/.test(from) || Number(from) >= version)
      throw invalidTask(
        `${at}: option upgrade: ${shown(from)} is no version below ${String(version)}, the task's own`,
      );
    if (typeof upgrader !== "function")
      throw wrongOption(at, `upgrade.${from}`, "a function", upgrader);
  }
  const oldest = Math.min(version - 1, ...versions.map(Number));
  for (let from = Math.max(1, oldest); from < version; from += 1)
    if (!versions.includes(String(from)))
      throw invalidTask(
        `${at}: option upgrade: there is none from version ${String(from)} to ${String(from + 1)}; recorded inputs of that version could not run`,
      );
  return version;
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
