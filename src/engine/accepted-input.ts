/**
 * The first steps of both paths: does the task exist, is the input what it takes, and can it be
 * written down. What is written down is the input as given, not as the schema changed it: the schema
 * is applied again where the task runs.
 */
import { encodePayload } from "../job/payload.js";
import { encodeJson, ResultNotSerializable } from "../task/json.js";
import type { InputCheck, RegisteredTask, TaskRegistry } from "../task/registry.js";
import type { Refusal } from "./api.js";

/** In bytes of JSON. HTTP's own limit is lower by default; this one holds for the library too. */
export const MAX_INPUT_BYTES = 64 * 1024 * 1024;

export interface AcceptedInput {
  readonly kind: "input";
  readonly task: RegisteredTask;
  readonly payloadJson: string;
}

export type InputDecision =
  AcceptedInput | Extract<Refusal, { readonly kind: "unknown_task" | "invalid" }>;

/** Answers in the same turn unless the schema is an asynchronous one. */
export function acceptInput(
  tasks: TaskRegistry,
  name: string,
  input: unknown,
): InputDecision | Promise<InputDecision> {
  const task = tasks.get(name);
  if (task === undefined) return { kind: "unknown_task", task: name, known: tasks.names };
  const check = tasks.checkInput(task, input);
  return check instanceof Promise
    ? check.then((checked) => encoded(task, input, checked))
    : encoded(task, input, check);
}

function encoded(task: RegisteredTask, input: unknown, check: InputCheck): InputDecision {
  if (check.kind === "invalid") return check;
  try {
    const inputJson = encodeJson(input, "input", MAX_INPUT_BYTES);
    return { kind: "input", task, payloadJson: encodePayload(task.name, inputJson, task.version) };
  } catch (error) {
    if (!(error instanceof ResultNotSerializable)) throw error;
    return { kind: "invalid", empty: false, issues: [{ path: "", message: error.message }] };
  }
}
