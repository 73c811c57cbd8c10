/**
 * From the paths that a user gives to `serve` or `worker` to their tasks.
 *
 * A broken file must not take the process with it. So every file is imported in a thread first,
 * where one that exits, spins, never finishes or throws from a timer ends that thread alone; what
 * passed there is imported here, where its schemas check inputs. Files are imported once more by
 * each thread that runs them: what a file does at import should be cheap to repeat.
 */
import { readdir, stat } from "node:fs/promises";
import { basename, extname, join, resolve } from "node:path";
import { systemClock, type Clock } from "../runtime/clock.js";
import { within } from "../runtime/within.js";
import { invalidTask } from "./invalid-task.js";
import { describe } from "./failure.js";
import { TASK_EXTENSIONS } from "./import-file.js";
import { loadDefinition } from "./load-definition.js";
import { createTaskRegistry, type RegisteredTask } from "./registry.js";
import { startThread } from "./start-thread.js";
import type { FromThread } from "./thread-protocol.js";

export interface LoadOptions {
  /** Longest time that one file may take to import, in ms, from 1; default 60000: a model may be loaded at import, a hang must not last. */
  readonly importTimeoutMs?: number;
  readonly clock?: Clock;
}

const IMPORT_TIMEOUT_MS = 60_000;

/**
 * @param paths task files, and folders whose task files (not those below) are taken in order of
 *   name; `*.test.*`, `*.d.ts` and names that start with `_` or `.` are left out.
 * @throws JobtableError `invalid_task`, one line: the path, what is wrong, what to do.
 */
export async function loadTasks(
  paths: readonly string[],
  options: LoadOptions = {},
): Promise<RegisteredTask[]> {
  const files = await findFiles(paths);
  const limitMs = options.importTimeoutMs ?? IMPORT_TIMEOUT_MS;
  const clock = options.clock ?? systemClock;
  await tryInThread(files, limitMs, clock);
  const tasks: RegisteredTask[] = [];
  for (const file of files) {
    const loading = loadDefinition(file, defaultNameOf(file));
    tasks.push(await within(clock, limitMs, loading, () => tooSlow(file, limitMs)));
  }
  // Two files of one name are found here, before anything starts.
  createTaskRegistry(tasks);
  return tasks;
}

function defaultNameOf(file: string): string {
  return basename(file, extname(file));
}

/** Absolute, each once, in the order given. */
async function findFiles(paths: readonly string[]): Promise<string[]> {
  const files = new Set<string>();
  for (const path of paths.map((given) => resolve(given))) {
    if (await isFolder(path)) for (const file of await filesOf(path)) files.add(file);
    else if (isTaskFile(basename(path))) files.add(path);
    else throw invalidTask(`${path}: not a task file; expected ${TASK_EXTENSIONS.join(", ")}`);
  }
  return [...files];
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    const missing = error instanceof Error && "code" in error && error.code === "ENOENT";
    const why = missing ? "no such file or folder" : `can't be read (${describe(error)})`;
    throw invalidTask(`${path}: ${why}`, { cause: error });
  }
}

async function filesOf(folder: string): Promise<string[]> {
  let entries;
  try {
    entries = await readdir(folder, { withFileTypes: true });
  } catch (error) {
    throw invalidTask(`${folder}: can't be read (${describe(error)})`, { cause: error });
  }
  const names = entries
    .filter((entry) => !entry.isDirectory() && !/^[_.]/.test(entry.name))
    .map(({ name }) => name)
    .filter((name) => isTaskFile(name) && !/\.test\.\w+$/.test(name))
    .sort();
  if (names.length === 0)
    throw invalidTask(`${folder}: no task files in it; expected ${TASK_EXTENSIONS.join(", ")}`);
  return names.map((name) => join(folder, name));
}

function isTaskFile(name: string): boolean {
  return TASK_EXTENSIONS.includes(extname(name)) && !/\.d\.m?ts$/.test(name);
}

/** Imports the files in a thread, one after the other, and rejects for the first that fails. */
async function tryInThread(files: readonly string[], limitMs: number, clock: Clock): Promise<void> {
  if (files.length === 0) return;
  let onFault: (fault: string | null) => void = () => undefined;
  const { worker, send } = startThread((message: FromThread) => {
    if (message.type === "loaded") onFault(message.fault);
    else if (message.type === "stray")
      onFault(`it throws outside its import: ${message.errorMessage}`);
  });
  const exited = new Promise<void>((done) =>
    worker.once("exit", () => {
      done();
    }),
  );
  try {
    let died = "";
    worker.on("error", (error) => (died = `: ${describe(error)}`));
    worker.once("exit", () => {
      onFault(`it ends its thread while it loads${died}`);
    });
    for (const file of files) {
      const answer = new Promise<string | null>((done) => (onFault = done));
      send({ type: "load", file, defaultName: defaultNameOf(file) });
      const fault = await within(clock, limitMs, answer, () => tooSlow(file, limitMs));
      if (fault !== null) throw invalidTask(fault.startsWith("it ") ? `${file}: ${fault}` : fault);
    }
  } finally {
    await worker.terminate();
    await exited;
  }
}

function tooSlow(file: string, limitMs: number): Promise<never> {
  const words = `still loading after ${String(limitMs)} ms; do slow work in run, not at import`;
  return Promise.reject(invalidTask(`${file}: ${words}`));
}
