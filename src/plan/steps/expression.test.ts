import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  escapeText,
  formatExpression,
  parseText,
  type Expression,
  type TextPart,
} from "./expression.js";

function partsOf(text: string): readonly TextPart[] {
  const parsed = parseText(text);
  if (parsed.kind === "malformed") throw new Error(parsed.problem);
  return parsed.parts;
}

function problemOf(text: string): string {
  const parsed = parseText(text);
  return parsed.kind === "malformed" ? `${parsed.opening}: ${parsed.problem}` : "none";
}

const word = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_-]{0,9}$/);
const expressions: fc.Arbitrary<Expression> = fc.oneof(
  fc.constant<Expression>({ kind: "workspace" }),
  fc.constant<Expression>({ kind: "plan_name" }),
  fc.record({
    kind: fc.constant("step" as const),
    id: word,
    output: fc.constantFrom("stdout" as const, "exit_code" as const),
    path: fc.constant([]),
  }),
  fc.record({
    kind: fc.constant("step" as const),
    id: word,
    output: fc.constant("output" as const),
    path: fc.array(
      fc.oneof(word, fc.nat(999_999_999), fc.string({ unit: "binary" }), fc.constant("}} ${{")),
      { maxLength: 6 },
    ),
  }),
);
const texts = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.array(fc.constantFrom("$", "{", "{{", "}}", "${{", "a", " ")).map((parts) => parts.join("")),
);

describe("expressions in texts", () => {
  it("are parts between the plain text", () => {
    expect(partsOf('a ${{ workspace }}/${{steps.x-1.output.words[0]["a b"]}}!')).toEqual([
      { kind: "text", text: "a " },
      { kind: "expression", expression: { kind: "workspace" }, opening: 0 },
      { kind: "text", text: "/" },
      {
        kind: "expression",
        expression: { kind: "step", id: "x-1", output: "output", path: ["words", 0, "a b"] },
        opening: 1,
      },
      { kind: "text", text: "!" },
    ]);
  });

  it.each([
    ["", []],
    ["$ {{ $$ }} ${", ["$ {{ $$ }} ${"]],
    ["$${{ workspace }}", ["${{ workspace }}"]],
    ["$$${{ workspace }}", ["$", "workspace"]],
    ["$$$${{ x", ["$${{ x"]],
    ['${{ steps.a.output["${{ }}"] }}${{ plan.name }}', ['steps.a.output["${{ }}"]', "plan.name"]],
  ])("%j has the parts %j", (text, expected) => {
    const shown = partsOf(text).map((part) =>
      part.kind === "text" ? part.text : formatExpression(part.expression),
    );
    expect(shown).toEqual(expected);
  });

  it.each([
    [
      "${{",
      "0: expected workspace, plan.name, or steps.ID with .stdout, .exit_code or .output, got the end of the line",
    ],
    [
      "$${{ ${{ plan.nam }}",
      '1: expected workspace, plan.name, or steps.ID with .stdout, .exit_code or .output, got "plan.nam }}"',
    ],
    ["${{ workspace }", '0: expected }} after workspace, got "}"'],
    [
      "${{ workspace.x }}",
      '0: expected workspace, plan.name, or steps.ID with .stdout, .exit_code or .output, got "workspace.x }}"',
    ],
    [
      "${{ steps }}",
      '0: expected workspace, plan.name, or steps.ID with .stdout, .exit_code or .output, got "steps }}"',
    ],
    ["${{ steps.a }}", '0: expected .stdout, .exit_code or .output after steps.a, got " }}"'],
    ["${{ steps.a.stdout.b }}", '0: expected }} after steps.a.stdout, got ".b }}"'],
    ["${{ steps.a.output.0 }}", '0: expected }} after steps.a.output, got ".0 }}"'],
    ["${{ steps.a.output[01] }}", '0: expected }} after steps.a.output, got "[01] }}"'],
    ['${{ steps.a.output["\\x"] }}', '0: expected }} after steps.a.output, got "[\\"\\\\x\\"] }}"'],
    ["${{ steps.a.output || 1 }}", '0: expected }} after steps.a.output, got "|| 1 }}"'],
  ])("%j is malformed", (text, problem) => {
    expect(problemOf(text)).toBe(problem);
  });

  it("come back as they were written, whatever stands around them", () => {
    fc.assert(
      fc.property(texts, expressions, texts, (before, expression, after) => {
        const source = `\${{ ${formatExpression(expression)} }}`;
        // A dollar sign before the expression would escape it.
        const parts = partsOf(`${escapeText(before)} ${source}${escapeText(after)}`);
        expect(parts.filter((part) => part.kind === "text").map(({ text }) => text)).toEqual(
          after === "" ? [`${before} `] : [`${before} `, after],
        );
        const found = parts.find((part) => part.kind === "expression");
        expect(found?.expression).toEqual(expression);
      }),
    );
  });

  it("are not in a text that was escaped", () => {
    fc.assert(
      fc.property(texts, (text) => {
        expect(partsOf(escapeText(text))).toEqual(text === "" ? [] : [{ kind: "text", text }]);
      }),
    );
  });
});
