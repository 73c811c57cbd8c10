import fc from "fast-check";
import { expect, test } from "vitest";
import { clean, clip, formatMs, indentJson, pad, safeJson, widthOf } from "./text.js";

test.each([
  ["\u001b[31mred\u001b[0m\nline", "red line"],
  ["\u001b]0;title\u0007gone", "gone"],
  ["a\u0007b\u009b2Jc\u007f", "a bc "],
  ["line\u2028paragraph\u2029end", "line paragraph end"],
  ["invoice\u202efdp.exe", "invoicefdp.exe"],
  ["日本 👍🏽 é", "日本 👍🏽 é"],
])("%j is printed as %j", (given, printed) => {
  expect(clean(given)).toBe(printed);
});

test("whatever is cleaned has nothing left that steers a terminal", () => {
  const nasty = fc.string({
    unit: fc.constantFrom("\u001b", "[", "]", "2", "J", ";", "\u009b", "\u0007", "\n", "\r", "a"),
  });
  fc.assert(
    fc.property(nasty, (text) => {
      expect(clean(text)).toMatch(/^[^\u0000-\u001f\u007f-\u009f]*$/);
    }),
  );
});

test("JSON keeps its value, and only its strings could steer", () => {
  const json = JSON.stringify({ a: "\u009b2J\u202e\u007f", b: ["\u001b"] });
  expect(safeJson(json)).toBe('{"a":"\\u009b2J\\u202e\\u007f","b":["\\u001b"]}');
  expect(JSON.parse(safeJson(json))).toEqual(JSON.parse(json));
  expect(indentJson('{"a":[1]}')).toBe('{\n  "a": [\n    1\n  ]\n}');
});

test.each([
  ["abc", 3],
  ["日本", 4],
  ["👩‍👩‍👧‍👦", 2],
  ["e\u0301", 1],
])("%s takes %d columns", (text, width) => {
  expect(widthOf(text)).toBe(width);
  expect(pad(text, width + 2)).toBe(`${text}  `);
  expect(pad(text, 0)).toBe(text);
});

test("long texts are cut between characters, short ones are not", () => {
  expect(clip("abc", 3)).toBe("abc");
  expect(clip("abcd", 3)).toBe("ab…");
  expect(clip("日本語", 5)).toBe("日本…");
  expect(clip("日本語", 4)).toBe("日…");
  expect(clip("a👩‍👩‍👧‍👦b", 3)).toBe("a…");
  expect(clip("\u001b[31mabcd\u001b[0m", 3)).toBe("ab…");
});

test("a cut text is never wider than it may be", () => {
  const texts = fc.string({ unit: "grapheme" });
  fc.assert(
    fc.property(texts, fc.integer({ min: 1, max: 12 }), (text, width) => {
      expect(widthOf(clip(clean(text), width))).toBeLessThanOrEqual(width);
    }),
  );
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
