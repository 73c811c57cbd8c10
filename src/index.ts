/**
 * The public library: explicit re-exports, nothing else. Task files import this too, and each of
 * their threads loads it, so what stands here must load little: heavier parts (ledgers, servers)
 * are imported when they are called for.
 */
export { task } from "./task/task.js";
export type { Isolation, Task, TaskContext, TaskLog, TaskOptions } from "./task/task.js";
export { Discard, Retry } from "./task/errors.js";
export type { RetryOptions } from "./task/errors.js";
