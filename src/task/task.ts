/** What users write: a named, typed piece of work. */
import type { StandardSchemaV1 } from "@standard-schema/spec";

/** Where a task's `run` executes. `thread`: a worker thread that may spin and can be killed. `inline`: this process's event loop, for async I/O. */
export type Isolation = "thread" | "inline";

export interface TaskContext {
  /** Aborted when the job is cancelled, its time is up, or the worker shuts down. */
  readonly signal: AbortSignal;
  /** `job_` + ULID; for a synchronous request `null`. */
  readonly jobId: string | null;
  /** The caller's own id of the request, or null. */
  readonly requestId: string | null;
  /** From 1. */
  readonly attempt: number;
  readonly log: TaskLog;
  /** Reports how far the job is: any small JSON value (at most 4 KiB), shown as `progress`. Only the newest is kept. */
  readonly progress: (value: unknown) => void;
}

/** Properties rather than methods, here and above: handlers take them out of `ctx`. */
export interface TaskLog {
  readonly debug: LogCall;
  readonly info: LogCall;
  readonly warn: LogCall;
  readonly error: LogCall;
}

type LogCall = (message: string, fields?: Readonly<Record<string, unknown>>) => void;

/** A method's type, so that a handler may say what the older input looked like: `(input: { url: string }) => ...`. */
export type Upgrader = { upgrade(input: unknown): unknown }["upgrade"];

export interface TaskOptions<Input = unknown, Output = unknown> {
  /** Letters, digits, `_`, `-`, `.`; at most 100. In a task file it defaults to the file's name. */
  readonly name?: string;
  readonly description?: string;
  /** Any Standard Schema (zod, valibot, arktype, ...): checks the input before it is accepted and again where it runs. */
  readonly input?: StandardSchemaV1<unknown, Input>;
  /** The version of what `input` takes, from 1 (the default) to 1000: raise it when jobs recorded before would not fit any more. */
  readonly version?: number;
  /**
   * By the version that each takes: makes an input of the next version of it. A recorded input goes
   * through them in turn up to `version`, where the task runs, before `input` checks it. There must
   * be one for `version - 1`, and none may be missing between the oldest and that.
   */
  readonly upgrade?: Readonly<Record<number, Upgrader>>;
  /** Checks what `run` returns before it is recorded; what it makes of it (defaults, transforms) is the result. */
  readonly output?: StandardSchemaV1<unknown, Output>;
  /** Limit of one run, in ms or as text with a unit (`"30s"`); the `model_run_timeout` setting, where there is one, bounds it and is the default. */
  readonly timeout?: number | string;
  /** Default: `thread` for task files, `inline` for tasks given to the library as functions. */
  readonly isolation?: Isolation;
  /** How often a job of this task may be tried in all; default 1. */
  readonly maxAttempts?: number;
  run(input: Input, ctx: TaskContext): Output | Promise<Output>;
}

/** A task as a caller of `createJobtable` sees it: its types ride on it. */
export interface Task<
  Name extends string = string,
  Input = unknown,
  Output = unknown,
> extends TaskOptions<Input, Output> {
  readonly name: Name;
}

/**
 * Gives a task its types; the value stays as it is. In a task file:
 *
 *     export default task({
 *       input: z.object({ img_data: z.string().min(1) }),
 *       async run({ img_data }, { signal, progress }) { ... return { words }; },
 *     });
 *
 * The options are checked where the task is loaded or registered.
 */
export function task<const Name extends string, Input = unknown, Output = unknown>(
  options: TaskOptions<Input, Output> & { readonly name: Name },
): Task<Name, Input, Output>;
export function task<Input = unknown, Output = unknown>(
  options: TaskOptions<Input, Output>,
): TaskOptions<Input, Output>;
export function task(options: TaskOptions): TaskOptions {
  return options;
}
