import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cleanText, TASK_NAME } from "./limits.js";

describe("cleanText", () => {
  test("leaves sound text as it is", () => {
    for (const text of ["", "a", "é 漢字 👩‍👩‍👧 \n\t", "x".repeat(20)])
      expect(cleanText(text, 20)).toBe(text);
  });

  test("NUL and lone surrogates become U+FFFD, pairs stay", () => {
    expect(cleanText("\0a\0", 10)).toBe("\ufffda\ufffd");
    expect(cleanText("\ud83d|\ude00|\ud83d\ude00", 10)).toBe("\ufffd|\ufffd|\ud83d\ude00");
    expect(cleanText("\ude00\ud83d", 10)).toBe("\ufffd\ufffd");
  });

  test("what is too long is cut and says so", () => {
    expect(cleanText("abcdef", 6)).toBe("abcdef");
    expect(cleanText("abcdefg", 6)).toBe("abcde…");
    expect(cleanText("ab", 1)).toBe("…");
  });

  test("a cut never tears a pair apart", () => {
    expect(cleanText("abc👍👍", 5)).toBe("abc…");
    expect(cleanText("ab👍👍", 5)).toBe("ab👍…");
    expect(cleanText("👍👍", 2)).toBe("…");
    expect(cleanText("a\ud83d\ud83dbc", 3)).toBe("a\ufffd…");
  });

  test("whatever comes in: bounded, well formed, without NUL, and cleaning again changes nothing", () => {
    const unit = fc.oneof(
      fc.constantFrom("\0", "\ud83d", "\ude00", "👍", "a", "…"),
      fc.string({ unit: "binary", maxLength: 2 }),
    );
    const text = fc.array(unit, { maxLength: 30 }).map((units) => units.join(""));
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 20 }), (given, maxChars) => {
        const cleaned = cleanText(given, maxChars);
        expect(cleaned.length).toBeLessThanOrEqual(maxChars);
        expect(cleaned.isWellFormed()).toBe(true);
        expect(cleaned).not.toContain("\0");
        expect(cleanText(cleaned, maxChars)).toBe(cleaned);
        expect(cleaned.endsWith("…")).toBe(given.length > maxChars || given.endsWith("…"));
      }),
      { seed: 1, numRuns: 500 },
    );
  });
});

test("task names are plain and bounded", () => {
  for (const name of ["ocr", "a", "A.b-c_9", "constructor", "x".repeat(100)])
    expect(TASK_NAME.test(name)).toBe(true);
  for (const name of ["", "-a", ".a", "_a", "a b", "a/b", "é", "a\n", "x".repeat(101)])
    expect(TASK_NAME.test(name)).toBe(false);
});
