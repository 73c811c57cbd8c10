/**
 * Refuses a text that would take the YAML parser past its stack, or keep it busy for many seconds,
 * before it is parsed. Goes over the parser's tokens, which are no tree yet.
 */
import { CST, Lexer } from "yaml";

/** The parser goes down one call for each level: a few thousand end the process. */
const MAX_FLOW_DEPTH = 100;
const MAX_INDENT = 400;
/** The parser needs about 30 µs for each; this is some twenty thousand lines. */
const MAX_TOKENS = 100_000;

/** Control characters that YAML 1.2 does not allow (section 5.1). */
const CONTROL = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/;

export interface Excess {
  /** In UTF-16 units. */
  readonly offset: number;
  readonly message: string;
}

export function excessOf(text: string): Excess | null {
  const control = CONTROL.exec(text);
  if (control !== null) {
    const code = control[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
    return { offset: control.index, message: `the control character U+${code} is not allowed` };
  }
  const indent = new Indent();
  let [offset, tokens, depth] = [0, 0, 0];
  for (const token of new Lexer().lex(text)) {
    const type = CST.tokenType(token);
    tokens += 1;
    if (type === "flow-map-start" || type === "flow-seq-start") depth += 1;
    else if (type === "flow-map-end" || type === "flow-seq-end") depth -= 1;
    if (depth > MAX_FLOW_DEPTH || indent.after(type, token, depth > 0) > MAX_INDENT)
      return { offset, message: "this is nested too deep for a plan" };
    if (tokens > MAX_TOKENS)
      return { offset, message: "this is too long for a plan; put data into a file of its own" };
    if (!isMark(token)) offset += token.length;
  }
  return null;
}

/** What the lexer says between the pieces of the text: one control character, which the text has none of. */
function isMark(token: string): boolean {
  return token.length === 1 && CONTROL.test(token);
}

const LEADING: ReadonlySet<CST.TokenType> = new Set([
  "space",
  "seq-item-ind",
  "explicit-key-ind",
  "map-value-ind",
]);

/** How far the present line is indented: by blanks, and by the dashes of lists within lists. */
class Indent {
  #columns = 0;
  #leading = true;

  after(type: CST.TokenType | null, token: string, inFlow: boolean): number {
    if (type === "newline") {
      this.#columns = 0;
      this.#leading = true;
    } else if (type !== null && LEADING.has(type)) {
      if (this.#leading && !inFlow) this.#columns += token.length;
    } else if (type !== "doc-mode") this.#leading = false;
    return this.#columns;
  }
}
