import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Evaluation } from "./evaluate.js";
import { escapeText, formatExpression } from "./expression.js";
import { MAX_RESULT_CHARS, MAX_STDOUT_BYTES, StepOutputs } from "./step-outputs.js";

const EXIT = { exitCode: 0, signal: null };

function evaluation(fill: (outputs: StepOutputs) => void = () => undefined): Evaluation {
  const outputs = new StepOutputs();
  fill(outputs);
  return new Evaluation({ workspace: "/tree", planName: "p", outputs });
}

function withTask(result: unknown): Evaluation {
  return evaluation((outputs) => outputs.keepTask("t", JSON.stringify(result)));
}

describe("evaluating", () => {
  it("puts values into texts: texts as they are, everything else as JSON", () => {
    const values = withTask({ text: "a b", list: [1, "x"], none: null, yes: true, "odd key": 1.5 });
    expect(
      values.text(
        '${{ workspace }} ${{ plan.name }} ${{ steps.t.output.text }} ${{ steps.t.output.list }} ${{ steps.t.output.none }} ${{ steps.t.output.yes }} ${{ steps.t.output["odd key"] }} $${{ x }}',
      ),
    ).toBe('/tree p a b [1,"x"] null true 1.5 ${{ x }}');
  });

  it("keeps the type of a text that is one expression, in whatever input", () => {
    const values = withTask({ list: [1, { a: null }] });
    const input = {
      whole: "${{ steps.t.output.list }}",
      deep: [{ a: "${{ steps.t.output.list[1].a }}", b: "${{ steps.t.output.list[0] }}!" }],
      "${{ workspace }}": 5,
      escaped: "$${{ workspace }}",
    };
    expect(values.json(input)).toEqual({
      whole: [1, { a: null }],
      deep: [{ a: null, b: "1!" }],
      "${{ workspace }}": 5,
      escaped: "${{ workspace }}",
    });
  });

  it("knows of a command its stdout without the last newlines, its exit code, its JSON", () => {
    const values = evaluation((outputs) => {
      outputs.keepCommand("c", Buffer.from('\n{"a": [2]}\r\n\n'), EXIT);
      outputs.keepCommand("killed", Buffer.from("\n\n"), { exitCode: null, signal: "SIGKILL" });
    });
    expect(values.json("${{ steps.c.stdout }}")).toBe('\n{"a": [2]}');
    expect(values.json("${{ steps.c.output.a[0] }}")).toBe(2);
    expect(values.json("${{ steps.c.exit_code }}")).toBe(0);
    expect(values.json("${{ steps.killed.exit_code }}")).toBe(137);
    expect(values.json("${{ steps.killed.stdout }}")).toBe("");
  });

  it.each([
    ["steps.t.output.words", "there is no .words in steps.t.output: it is a map of text, list"],
    ["steps.t.output.list[2]", "there is no [2] in steps.t.output.list: it is a list of 2"],
    ["steps.t.output.list.length", "there is no .length in steps.t.output.list: it is a list of 2"],
    ["steps.t.output.text.a", 'there is no .a in steps.t.output.text: it is "a b"'],
    [
      "steps.t.output.toString",
      "there is no .toString in steps.t.output: it is a map of text, list",
    ],
    [
      "steps.t.output.__proto__",
      "there is no .__proto__ in steps.t.output: it is a map of text, list",
    ],
    ["steps.t.stdout", "steps.t.stdout: a task has only .output"],
    ["steps.nobody.stdout", "steps.nobody.stdout: there is no such step before this one"],
    ["steps.failed.output", "steps.failed.output: the task gave no result"],
    [
      "steps.huge.output",
      `steps.huge.output: its result is larger than ${String(MAX_RESULT_CHARS)} characters`,
    ],
    [
      "steps.large.stdout",
      `steps.large.stdout: its stdout is larger than ${String(MAX_STDOUT_BYTES)} bytes`,
    ],
    [
      "steps.large.output",
      `steps.large.output: its stdout is larger than ${String(MAX_STDOUT_BYTES)} bytes`,
    ],
    ["steps.binary.stdout", "steps.binary.stdout: its stdout is not UTF-8"],
    ["steps.words.output", "steps.words.output: its stdout is not JSON"],
    ["steps.deep.output", "steps.deep.output: its stdout is nested deeper than 500 levels"],
    ["steps.gone.exit_code", "steps.gone.exit_code: it could not be started"],
  ])("tells what is not there: %s", (expression, message) => {
    const values = evaluation((outputs) => {
      outputs.keepTask("t", JSON.stringify({ text: "a b", list: [1, 2] }));
      outputs.keepTask("failed", null);
      outputs.keepTask("huge", JSON.stringify("x".repeat(MAX_RESULT_CHARS)));
      outputs.keepCommand("large", null, EXIT);
      outputs.keepCommand("binary", Buffer.from([0xff]), EXIT);
      outputs.keepCommand("words", Buffer.from("a b"), EXIT);
      outputs.keepCommand("deep", Buffer.from("[".repeat(600) + "]".repeat(600)), EXIT);
      outputs.keepNothing("gone", "it could not be started");
    });
    expect(() => values.text(`a \${{ ${expression} }}`)).toThrow(
      expect.objectContaining({ name: "ExpressionFailed", message }),
    );
    expect(() => values.json([`\${{ ${expression} }}`])).toThrow(message);
  });

  it("bounds what one step may ask for in all", () => {
    const values = withTask("x".repeat(1_000_000));
    expect(values.text("${{ steps.t.output }}").length).toBe(1_000_000);
    expect(() => values.json(Array(5).fill("${{ steps.t.output }}"))).toThrow(
      "the step asks for more than 4194304 characters; pass them by a file",
    );
  });

  it("refuses what no command can be given", () => {
    for (const text of ["a\0b", "\uD800"])
      expect(() => withTask(text).passable("${{ steps.t.output }}", "A")).toThrow(
        "A holds NUL or half of a surrogate pair, which no command can be given",
      );
  });

  it("finds every part of every JSON value by its path", () => {
    fc.assert(
      fc.property(
        fc.jsonValue({ maxDepth: 4 }),
        fc.string(),
        fc.string(),
        (json, before, after) => {
          const root = JSON.parse(JSON.stringify(json)) as unknown;
          for (const { path, value } of partsOf(root)) {
            const written = formatExpression({ kind: "step", id: "t", output: "output", path });
            expect(withTask(root).json(`\${{ ${written} }}`)).toEqual(value);
            const shown = typeof value === "string" ? value : JSON.stringify(value);
            const text = `${escapeText(before)} \${{ ${written} }}${escapeText(after)}`;
            expect(withTask(root).text(text)).toBe(`${before} ${shown}${after}`);
          }
        },
      ),
      { numRuns: 50 },
    );
  });
});

function partsOf(
  value: unknown,
  path: (string | number)[] = [],
): { path: (string | number)[]; value: unknown }[] {
  const children: [string | number, unknown][] = Array.isArray(value)
    ? [...(value as unknown[]).entries()]
    : Object.entries(typeof value === "object" && value !== null ? value : {});
  return [{ path, value }, ...children.flatMap(([key, child]) => partsOf(child, [...path, key]))];
}
