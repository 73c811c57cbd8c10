import { expect, test } from "vitest";
import { LiveText } from "./live-text.js";

function screen(columns: number, rows: number): { live: LiveText; written: () => string } {
  let written = "";
  const live = new LiveText({ write: (text) => (written += text), columns, rows });
  return {
    live,
    written() {
      const text = written;
      written = "";
      return text;
    },
  };
}

test("each text takes the place of the one before", () => {
  const { live, written } = screen(80, 24);
  live.show("a\nb");
  expect(written()).toBe("a\nb");
  live.show("c");
  expect(written()).toBe("\r\u001b[1A\u001b[Jc");
  live.show("c");
  expect(written()).toBe("");
  live.clear();
  expect(written()).toBe("\r\u001b[J");
  live.clear();
  expect(written()).toBe("");
});

test("no line wraps, and what does not fit is left out, or the way back would be lost", () => {
  const { live, written } = screen(5, 3);
  live.show("日本語\nb\nc\nd");
  expect(written()).toBe("日…\nb");
  live.clear();
  expect(written()).toBe("\r\u001b[1A\u001b[J");
});
