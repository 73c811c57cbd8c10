/** The tasks that `serve` and `worker` are given on the command line. */
import { loadTasks } from "../task/load-tasks.js";
import type { RegisteredTask } from "../task/registry.js";
import { misuse } from "./exit-code.js";

/**
 * @param command for the message.
 * @throws JobtableError where none is given or one can't be loaded.
 */
export async function tasksFrom(
  command: string,
  paths: readonly string[],
): Promise<RegisteredTask[]> {
  if (paths.length === 0)
    throw misuse(
      `${command}: no tasks given; name task files or folders of them, as in: jobtable ${command} tasks/ocr.ts`,
    );
  return loadTasks(paths);
}

/** The task of a request that names none: the one set, or the only one. Null where there is no such one. */
export function defaultTaskOf(
  named: string | null,
  tasks: readonly RegisteredTask[],
): RegisteredTask | null {
  const only = tasks.length === 1 ? (tasks[0] ?? null) : null;
  if (named === null) return only;
  const found = tasks.find(({ name }) => name === named);
  if (found !== undefined) return found;
  throw misuse(
    `setting default_task: no task is named ${named}; known: ${tasks.map(({ name }) => name).join(", ")}`,
  );
}
