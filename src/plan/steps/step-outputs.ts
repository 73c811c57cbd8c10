/**
 * What later steps may ask of earlier ones, kept for those that have an id. What is too large to be
 * kept, or is not there, is known as that: it fails the step that asks, not the one that wrote.
 */
import { constants } from "node:os";
import { MAX_JSON_DEPTH } from "../../task/json.js";
import type { StepOutput } from "./expression.js";

/** Of a command's standard output. */
export const MAX_STDOUT_BYTES = 64 * 1024;
/** Of a task's result, as JSON. */
export const MAX_RESULT_CHARS = 1024 * 1024;

/** `text` of `stdout` and `number` of `exit_code` are values like that of `output`. */
export type OutputValue =
  | { readonly kind: "value"; readonly value: unknown }
  | { readonly kind: "none"; readonly why: string };

type Outputs = Readonly<Record<StepOutput, () => OutputValue>>;

export class StepOutputs {
  readonly #byId = new Map<string, Outputs>();

  /** @param why it never ran. */
  keepNothing(id: string | null, why: string): void {
    if (id === null) return;
    const nothing = (): OutputValue => none(why);
    this.#byId.set(id, { stdout: nothing, exit_code: nothing, output: nothing });
  }

  /** @param stdout the first `MAX_STDOUT_BYTES` of it, or null where there was more. */
  keepCommand(id: string | null, stdout: Buffer | null, end: CommandExit): void {
    if (id === null) return;
    const text = textOf(stdout);
    this.#byId.set(id, {
      stdout: () => text,
      exit_code: () => ({ kind: "value", value: exitCodeOf(end) }),
      output: once(() => (text.kind === "none" ? text : jsonOf(String(text.value), "its stdout"))),
    });
  }

  /** @param resultJson null where the task failed. */
  keepTask(id: string | null, resultJson: string | null): void {
    if (id === null) return;
    const other = (): OutputValue => none("a task has only .output");
    const result = resultOf(resultJson);
    this.#byId.set(id, { stdout: other, exit_code: other, output: result });
  }

  get(id: string, output: StepOutput): OutputValue {
    return this.#byId.get(id)?.[output]() ?? none("there is no such step before this one");
  }
}

export interface CommandExit {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** What a shell says in `$?` of a process that a signal ended. */
function exitCodeOf({ exitCode, signal }: CommandExit): number {
  return exitCode ?? 128 + (signal === null ? 0 : constants.signals[signal]);
}

function textOf(stdout: Buffer | null): OutputValue {
  if (stdout === null) return none(`its stdout is larger than ${MAX_STDOUT_BYTES} bytes`);
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(stdout);
    return { kind: "value", value: withoutLastNewlines(text) };
  } catch {
    return none("its stdout is not UTF-8");
  }
}

/** As a shell's `$(...)` does it; a loop, since a pattern would look at each newline anew. */
function withoutLastNewlines(text: string): string {
  let end = text.length;
  while (text[end - 1] === "\n") end -= text[end - 2] === "\r" ? 2 : 1;
  return text.slice(0, end);
}

function resultOf(resultJson: string | null): () => OutputValue {
  if (resultJson === null) return () => none("the task gave no result");
  if (resultJson.length > MAX_RESULT_CHARS)
    return () => none(`its result is larger than ${MAX_RESULT_CHARS} characters`);
  return once(() => jsonOf(resultJson, "its result"));
}

function jsonOf(text: string, what: string): OutputValue {
  try {
    const value: unknown = JSON.parse(text);
    return isDeeper(value, MAX_JSON_DEPTH)
      ? none(`${what} is nested deeper than ${MAX_JSON_DEPTH} levels`)
      : { kind: "value", value };
  } catch {
    return none(`${what} is not JSON`);
  }
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((item) => isDeeper(item, levels - 1));
}

function once(make: () => OutputValue): () => OutputValue {
  let made: OutputValue | undefined;
  return () => (made ??= make());
}

function none(why: string): OutputValue {
  return { kind: "none", why };
}
