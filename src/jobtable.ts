/**
 * The library: jobs in the program that uses it, typed by its tasks.
 *
 *     const jobtable = createJobtable({ store: "sqlite:jobs.db", tasks: [ocr] });
 *     await jobtable.start();
 *     const job = await jobtable.submit("ocr", { img_data });
 *     await jobtable.wait(job);
 *     const result = await jobtable.result(job);
 *     await jobtable.stop();
 *
 * The store opens, and the settings are checked, at the first call. Without `start` jobs can be
 * submitted and looked at, and whoever else works on the store runs them. Jobs are named by their
 * records or by their ids, in both spellings, `job_` + ULID and the bare ULID; records carry the bare one.
 *
 * What goes wrong is a `JobtableError` whose `code` says what it was: `invalid_config`,
 * `invalid_task`, `invalid_input`, `key_conflict`, `unknown_task`, `queue_full`, `not_ready`, `ledger_...`. Only `run`
 * rejects with something else as well: a `TaskFailed`, which is no `JobtableError`, when the task was
 * run and gave no output. Texts that can't be an id name a job that is unknown.
 */
import type { Jobtable, JobtableOptions } from "./jobtable/api.js";
import { LibraryJobtable } from "./jobtable/library.js";
import { defineInline } from "./task/definition.js";
import { createTaskRegistry } from "./task/registry.js";
import type { Task } from "./task/task.js";

/** @throws JobtableError `invalid_task`: everything about the tasks is checked here. */
export function createJobtable<const Tasks extends readonly Task[]>({
  tasks,
  store,
  worker = true,
  plans = false,
  logger,
  ...settings
}: JobtableOptions<Tasks>): Jobtable<Tasks> {
  const registry = createTaskRegistry(defineInline(tasks));
  return new LibraryJobtable(async () => {
    const { openEngine } = await import("./compose.js");
    return openEngine({ store, tasks: registry, settings, worker, plans, logger });
  });
}
