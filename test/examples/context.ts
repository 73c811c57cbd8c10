/** What a runner hands to a task, in its plainest form. */
import type { TaskContext } from "../../src/task/task.js";

const silent = (): void => undefined;

export function contextOf(
  signal: AbortSignal = new AbortController().signal,
  progress: (value: unknown) => void = silent,
): TaskContext {
  const log = { debug: silent, info: silent, warn: silent, error: silent };
  return { signal, jobId: null, requestId: null, attempt: 1, log, progress };
}
