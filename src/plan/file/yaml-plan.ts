/**
 * A text in YAML 1.2 as plain values that know where they stand. What YAML would take and a plan must
 * not is refused: several documents, tags, other versions of YAML, texts that are too deep or long.
 */
import { LineCounter, parseDocument, type Document, type YAMLError } from "yaml";
import { OPENING } from "../steps/expression.js";
import { Findings, type Place, type PlanSource } from "./findings.js";
import { excessOf } from "./yaml-bounds.js";
import { YamlSource } from "./yaml-source.js";

export interface YamlPlan {
  readonly value: unknown;
  readonly source: PlanSource;
  /** What is wrong with it so far; its value is then not whole. */
  readonly findings: Findings;
}

/**
 * @param name of the file, for messages.
 * @throws InvalidPlan for what is no YAML, or no single document.
 */
export function parseYamlPlan(text: string, name: string): YamlPlan {
  const placeOf = placesIn(text);
  const source = new YamlSource(name, text, placeOf);
  const findings = new Findings(source);
  const excess = excessOf(text);
  if (excess !== null) findings.addAt(placeOf(excess.offset), excess.message);
  findings.throwIfAny();
  // Doubled keys are found by the source: the parser compares each key with all others.
  const document = parseDocument(text, {
    uniqueKeys: false,
    resolveKnownTags: false,
    prettyErrors: false,
    logLevel: "error",
  });
  addFaults(document, text, placeOf, findings);
  findings.throwIfAny();
  return { value: source.read(document.contents, findings), source, findings };
}

/** By offset in UTF-16 units. */
function placesIn(text: string): (offset: number) => Place {
  const lines = new LineCounter();
  lines.addNewLine(0);
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1))
    lines.addNewLine(at + 1);
  return (offset) => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
}

/** Of each line the first fault: the others mostly follow from it. */
function addFaults(
  document: Document.Parsed,
  text: string,
  placeOf: (offset: number) => Place,
  findings: Findings,
): void {
  const seen = new Set<number>();
  const lines = text.split("\n");
  // A warning is about a tag that nothing knows, whose value would be taken for text.
  for (const fault of [...document.errors, ...document.warnings]) {
    const place = placeOf(fault.pos[0]);
    if (seen.has(place.line)) continue;
    seen.add(place.line);
    findings.addAt(place, faultText(fault, lines[place.line - 1] ?? ""));
  }
  const { explicit, version } = document.directives.yaml;
  if (explicit === true && version !== "1.2")
    findings.addAt({ line: 1, column: 1 }, `a plan is YAML 1.2, not ${version}`);
}

function faultText({ code, message }: YAMLError, line: string): string {
  if (code === "MULTIPLE_DOCS") return "here begins a second document; a file holds one plan";
  if (code === "TAB_AS_INDENT") return "a tab can't indent: use blanks";
  if (code === "TAG_RESOLVE_FAILED") return `a plan has no tags: ${message}`;
  const hint = line.includes(OPENING)
    ? "; a text with ${{ }} that stands within { } or [ ] needs quotes"
    : "";
  return `this is no YAML: ${message}${hint}`;
}
