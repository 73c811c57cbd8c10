/**
 * The formats of the config file that are plain text. What can't be parsed is told with its place,
 * in one line: `2:5: a key stands twice`. The parsers are loaded when a file of theirs is read.
 */

export type Parse = (text: string) => Promise<unknown>;

/** By the end of the file's name. Each rejects with a `MalformedText`. */
export const PARSERS: ReadonlyMap<string, Parse> = new Map([
  [".json", parseJson],
  [".toml", parseToml],
  [".yaml", parseYaml],
  [".yml", parseYaml],
]);

export class MalformedText extends Error {
  /** @param place both count from 1; null where the parser does not give one. */
  constructor(
    what: string,
    readonly place: { readonly line: number; readonly column: number } | null,
    options?: ErrorOptions,
  ) {
    super(firstLine(what), options);
    this.name = "MalformedText";
  }
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? text;
}

async function parseJson(text: string): Promise<unknown> {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    // V8: "Expected ',' or '}' after property value in JSON at position 17 (line 2 column 1)".
    const [, what = messageOf(error), position] =
      /^(.*?)(?: in JSON)?(?: at position (\d+).*)?$/s.exec(messageOf(error)) ?? [];
    const at = position === undefined ? text.length : Number(position);
    const before = text.slice(0, at).split("\n");
    const place = { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
    throw new MalformedText(what, place, { cause: error });
  }
}

async function parseToml(text: string): Promise<unknown> {
  const { parse, TomlError } = await import("smol-toml");
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const what = error.message.replace(/^Invalid TOML document: /, "");
    throw new MalformedText(what, { line: error.line, column: error.column }, { cause: error });
  }
}

async function parseYaml(text: string): Promise<unknown> {
  const { parseDocument } = await import("yaml");
  const document = parseDocument(text);
  // A warning is about a tag that nothing knows, whose value would be taken for text.
  const fault = document.errors[0] ?? document.warnings[0];
  if (fault !== undefined) {
    const start = fault.linePos?.[0];
    const place = start === undefined ? null : { line: start.line, column: start.col };
    const what = firstLine(fault.message).replace(/ at line \d+, column \d+:?$/, "");
    throw new MalformedText(what, place, { cause: fault });
  }
  try {
    return document.toJS() as unknown;
  } catch (error) {
    // An alias of nothing, or so many that they would fill the memory.
    throw new MalformedText(messageOf(error), null, { cause: error });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
