/**
 * The little language in a plan's texts: `${{ steps.ocr.output.words[0].text }}`. Here is how it is
 * written; what it comes to stands in evaluate.ts.
 *
 *     ${{ workspace }}            the folder that the step works in, absolute
 *     ${{ plan.name }}
 *     ${{ steps.ID.stdout }}      of an earlier command, without its last newlines
 *     ${{ steps.ID.exit_code }}   of an earlier command
 *     ${{ steps.ID.output }}      of an earlier task: its result; of a command: its stdout as JSON.
 *                                 A path may follow: .key ["any key"] [0]
 *
 * A dollar sign before `{{` is written twice, as `$$`, where it is to stay one: `$${{ x }}` is the
 * text `${{ x }}`. Everywhere else it is an ordinary character.
 */

export const STEP_OUTPUTS = ["stdout", "exit_code", "output"] as const;
export type StepOutput = (typeof STEP_OUTPUTS)[number];

/** Keys and places in lists, outermost first. */
export type OutputPath = readonly (string | number)[];

export type Expression =
  | { readonly kind: "workspace" }
  | { readonly kind: "plan_name" }
  | {
      readonly kind: "step";
      readonly id: string;
      readonly output: StepOutput;
      /** Empty unless `output` is `output`. */
      readonly path: OutputPath;
    };

export type TextPart =
  | { readonly kind: "text"; readonly text: string }
  | {
      readonly kind: "expression";
      readonly expression: Expression;
      /** How many `${{` stand before its own in the text, for whoever tells where it is. */
      readonly opening: number;
    };

export type ParsedText =
  | { readonly kind: "parsed"; readonly parts: readonly TextPart[] }
  | { readonly kind: "malformed"; readonly problem: string; readonly opening: number };

/** What opens an expression. */
export const OPENING = "${{";

const DOLLARS = /(\$+)\{\{/g;
const WORD = /[A-Za-z_][A-Za-z0-9_-]*/y;
const INDEX = /\[(0|[1-9][0-9]{0,8})\]/y;
const KEY = /\[("(?:[^"\\]|\\.)*")\]/y;
const BLANKS = /\s*/y;
/** Of a text in a message. */
const SHOWN_CHARS = 40;

const NAMES = "workspace, plan.name, or steps.ID with .stdout, .exit_code or .output";

/** Takes a text apart. Neighbouring parts of plain text are one. */
export function parseText(text: string): ParsedText {
  const parts: TextPart[] = [];
  let plain = "";
  let from = 0;
  let opening = 0;
  for (;;) {
    DOLLARS.lastIndex = from;
    const found = DOLLARS.exec(text);
    if (found === null) break;
    const [all, dollars = ""] = found;
    plain += text.slice(from, found.index) + "$".repeat(dollars.length >> 1);
    from = found.index + all.length;
    if (dollars.length % 2 === 0) {
      plain += "{{";
      opening += 1;
      continue;
    }
    const reader = new Reader(text, from);
    const expression = reader.expression();
    if (typeof expression === "string") return { kind: "malformed", problem: expression, opening };
    if (plain !== "") parts.push({ kind: "text", text: plain });
    plain = "";
    parts.push({ kind: "expression", expression, opening });
    opening += 1 + text.slice(from, reader.at).split(OPENING).length - 1;
    from = reader.at;
  }
  plain += text.slice(from);
  if (plain !== "") parts.push({ kind: "text", text: plain });
  return { kind: "parsed", parts };
}

/** A text that `parseText` reads as plain: this one. */
export function escapeText(text: string): string {
  return text.replace(DOLLARS, (_, dollars: string) => `${dollars}${dollars}{{`);
}

/** As it is written, without the braces. */
export function formatExpression(expression: Expression): string {
  switch (expression.kind) {
    case "workspace":
      return "workspace";
    case "plan_name":
      return "plan.name";
    case "step":
      return `steps.${expression.id}.${expression.output}${formatPath(expression.path)}`;
    default:
      return expression satisfies never;
  }
}

export function formatPath(path: OutputPath): string {
  return path
    .map((key) => {
      if (typeof key === "number") return `[${key}]`;
      WORD.lastIndex = 0;
      return WORD.exec(key)?.[0] === key ? `.${key}` : `[${JSON.stringify(key)}]`;
    })
    .join("");
}

/** Reads one expression. Its verbs answer a text where something is wrong: what. */
class Reader {
  constructor(
    readonly text: string,
    public at: number,
  ) {}

  /** From behind the opening braces to behind the closing ones. */
  expression(): Expression | string {
    this.#take(BLANKS);
    const expression = this.#body();
    if (typeof expression === "string") return expression;
    this.#take(BLANKS);
    if (!this.text.startsWith("}}", this.at))
      return `expected }} after ${formatExpression(expression)}, got ${this.#rest()}`;
    this.at += 2;
    return expression;
  }

  #body(): Expression | string {
    const begin = this.at;
    const [head = "", second = ""] = [this.#take(WORD)?.[0], this.#property()];
    if (head === "workspace" && second === "") return { kind: "workspace" };
    if (head === "plan" && second === "name") return { kind: "plan_name" };
    if (head === "steps" && second !== "") return this.#step(second);
    this.at = begin;
    return `expected ${NAMES}, got ${this.#rest()}`;
  }

  #step(id: string): Expression | string {
    const begin = this.at;
    const named = this.#property();
    const output = STEP_OUTPUTS.find((name) => name === named);
    if (output === undefined) {
      this.at = begin;
      return `expected .stdout, .exit_code or .output after steps.${id}, got ${this.#rest()}`;
    }
    if (output !== "output") return { kind: "step", id, output, path: [] };
    const path: (string | number)[] = [];
    for (let key = this.#key(); key !== undefined; key = this.#key()) path.push(key);
    return { kind: "step", id, output, path };
  }

  #key(): string | number | undefined {
    const index = this.#take(INDEX)?.[1];
    if (index !== undefined) return Number(index);
    const quoted = this.#take(KEY);
    if (quoted === null) return this.#property();
    try {
      return JSON.parse(quoted[1] ?? "") as string;
    } catch {
      this.at -= quoted[0].length;
      return undefined;
    }
  }

  #property(): string | undefined {
    if (this.text[this.at] !== ".") return undefined;
    this.at += 1;
    const name = this.#take(WORD)?.[0];
    if (name === undefined) this.at -= 1;
    return name;
  }

  #take(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found !== null) this.at = pattern.lastIndex;
    return found;
  }

  #rest(): string {
    const rest = this.text.slice(this.at, this.at + SHOWN_CHARS).split("\n", 1)[0] ?? "";
    return rest === "" ? "the end of the line" : JSON.stringify(rest);
  }
}
