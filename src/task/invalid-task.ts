/** How every fault of a task is told: one line that names the task or its file. */
import { JobtableError } from "../job/errors.js";

export function invalidTask(detail: string, options?: ErrorOptions): JobtableError {
  return new JobtableError("invalid_task", detail, options);
}

/** How messages name the place that a task comes from: its file, or null for one given to the library. */
export function sourceOf(file: string | null): string {
  return file ?? "given to the library";
}
