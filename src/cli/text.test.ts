import { expect, test } from "vitest";
import { fields, formatMs, formatTime, indentJson, shorten, table } from "./text.js";

test("columns are as wide as they need to be", () => {
  expect(
    table(
      ["A", "LONGER"],
      [
        ["wide cell", "x"],
        ["y", ""],
      ],
    ),
  ).toBe("A          LONGER\nwide cell  x\ny");
  expect(table(["A", "B"], [])).toBe("A  B");
});

test("fields leave out what is null", () => {
  expect(
    fields([
      ["a", "1"],
      ["longer", "2"],
      ["none", null],
    ]),
  ).toBe("a:      1\nlonger: 2");
});

test("what strangers sent can't steer the terminal", () => {
  expect(table(["X"], [["\u001b[31mred\nline"]])).toBe("X\n [31mred line");
  expect(fields([["x", "a\u0007b"]])).toBe("x: a b");
});

test.each([
  [0, "0 ms"],
  [999, "999 ms"],
  [1_000, "1.0 s"],
  [59_999, "59.9 s"],
  [60_000, "1 min 0 s"],
  [3_599_999, "59 min 59 s"],
  [3_600_000, "1 h 0 min"],
  [86_400_000, "1 d 0 h"],
  [100 * 3_600_000, "4 d 4 h"],
])("%d ms is %s", (ms, text) => {
  expect(formatMs(ms)).toBe(text);
});

test("times are UTC", () => {
  expect(formatTime(0)).toBe("1970-01-01T00:00:00.000Z");
  expect(formatTime(null)).toBeNull();
});

test("long texts are cut, short ones are not", () => {
  expect(shorten("abc", 3)).toBe("abc");
  expect(shorten("abcd", 3)).toBe("ab…");
});

test("JSON for people is the same value", () => {
  expect(indentJson('{"a":[1]}')).toBe('{\n  "a": [\n    1\n  ]\n}');
});
