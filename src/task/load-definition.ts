/** A task file's task, checked. The same in the process and in its threads, so that both say the same of a bad one. */
import { JobtableError } from "../job/errors.js";
import { defineTask } from "./definition.js";
import { describe } from "./failure.js";
import { TaskLoadError, importTaskFile } from "./import-file.js";
import { invalidTask } from "./invalid-task.js";
import type { RegisteredTask } from "./registry.js";

/**
 * @param file absolute path.
 * @throws JobtableError `invalid_task`, one line that starts with the file or names it.
 */
export async function loadDefinition(file: string, defaultName: string): Promise<RegisteredTask> {
  try {
    return defineTask(await importTaskFile(file), { file, defaultName });
  } catch (error) {
    if (error instanceof JobtableError) throw error;
    const why = error instanceof TaskLoadError ? error.message : describe(error);
    throw invalidTask(`${file}: ${why}`, { cause: error });
  }
}
