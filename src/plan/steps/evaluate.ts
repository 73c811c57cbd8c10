/**
 * What texts with expressions come to when their step begins. In a text that holds more than one
 * expression, texts stand as they are and everything else as JSON. Fails with a `StepFailure`, which
 * names the expression, where it asks for what isn't there.
 */
import { formatExpression, formatPath, parseText, type Expression } from "./expression.js";
import { StepFailure } from "./step-failure.js";
import type { StepOutputs } from "./step-outputs.js";

/** Of all that one step asks for: expressions can repeat what is large. */
const MAX_CHARS = 4 * 1024 * 1024;
const MAX_SHOWN_KEYS = 10;
const MAX_SHOWN_CHARS = 60;

export interface Values {
  /** Absolute path of the tree that the steps work in. */
  readonly workspace: string;
  readonly planName: string;
  readonly outputs: StepOutputs;
}

/** Evaluates the texts of one step. */
export class Evaluation {
  readonly #values: Values;
  #chars = 0;

  constructor(values: Values) {
    this.#values = values;
  }

  /** @throws StepFailure */
  text(text: string): string {
    const pieces = this.#pieces(text).map((piece) =>
      typeof piece === "string" ? piece : this.#charged(asText(this.#valueOf(piece))),
    );
    return pieces.join("");
  }

  /** For the process that a step runs, which takes neither NUL nor half of a character. */
  passable(text: string, what: string): string {
    const value = this.text(text);
    if (value.includes("\0") || !value.isWellFormed())
      throw failure(`${what} holds NUL or half of a surrogate pair, which no command can be given`);
    return value;
  }

  /** A JSON value with the texts in it evaluated; one that is a whole expression keeps its type. */
  json(value: unknown): unknown {
    if (typeof value === "string") {
      const [only, ...others] = this.#pieces(value);
      if (only === undefined || typeof only === "string" || others.length > 0)
        return this.text(value);
      const whole = this.#valueOf(only);
      this.#charged(asText(whole));
      return whole;
    }
    if (Array.isArray(value)) return value.map((item: unknown) => this.json(item));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, this.json(item)]));
  }

  #pieces(text: string): (string | Expression)[] {
    const parsed = parseText(text);
    // Plans are checked when they are read: this one was made otherwise.
    if (parsed.kind === "malformed") throw failure(parsed.problem);
    return parsed.parts.map((part) => (part.kind === "text" ? part.text : part.expression));
  }

  #valueOf(expression: Expression): unknown {
    const { workspace, planName, outputs } = this.#values;
    if (expression.kind === "workspace") return workspace;
    if (expression.kind === "plan_name") return planName;
    const found = outputs.get(expression.id, expression.output);
    if (found.kind === "none") throw failure(`${formatExpression(expression)}: ${found.why}`);
    return valueAt(found.value, expression);
  }

  #charged(text: string): string {
    this.#chars += text.length;
    if (this.#chars > MAX_CHARS)
      throw failure(`the step asks for more than ${MAX_CHARS} characters; pass them by a file`);
    return text;
  }
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function valueAt(root: unknown, expression: Extract<Expression, { kind: "step" }>): unknown {
  let value = root;
  for (const [depth, key] of expression.path.entries()) {
    const child = childOf(value, key);
    if (child === null) {
      const upTo = formatExpression({ ...expression, path: expression.path.slice(0, depth) });
      throw failure(`there is no ${formatPath([key])} in ${upTo}: it is ${shown(value)}`);
    }
    value = child.value;
  }
  return value;
}

/** Nothing that is inherited: only what the JSON says. */
function childOf(value: unknown, key: string | number): { readonly value: unknown } | null {
  if (Array.isArray(value))
    return typeof key === "number" && key < value.length ? { value: value[key] as unknown } : null;
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return null;
  return { value: (value as Readonly<Record<string, unknown>>)[key] };
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value !== "object" || value === null) {
    const text = JSON.stringify(value);
    return text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS)}…` : text;
  }
  const keys = Object.keys(value);
  const more = keys.length > MAX_SHOWN_KEYS ? ", …" : "";
  const named = keys.slice(0, MAX_SHOWN_KEYS).map((key) => key.slice(0, MAX_SHOWN_CHARS));
  return keys.length === 0 ? "an empty map" : `a map of ${named.join(", ")}${more}`;
}

function failure(message: string): StepFailure {
  return new StepFailure("ExpressionFailed", message);
}
