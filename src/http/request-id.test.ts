import { expect, test } from "vitest";
import { isHeaderSafe, requestIdFrom, requestIdSource } from "./request-id.js";

test.each(["r-1", "a b", "x".repeat(200), "~!@#$%^&*()"])("%.20s can stand in a header", (id) => {
  expect(isHeaderSafe(id)).toBe(true);
  expect(requestIdFrom(id, () => "made")).toBe(id);
});

test.each(["", " a", "a ", "a\r\nb", "a\0", "ä", "\ud800", "x".repeat(201)])(
  "%j can't, and another is made",
  (id) => {
    expect(isHeaderSafe(id)).toBe(false);
    expect(requestIdFrom(id, () => "made")).toBe("made");
  },
);

test("a header that is missing or came twice is none", () => {
  expect(requestIdFrom(undefined, () => "made")).toBe("made");
  expect(requestIdFrom(["a", "b"], () => "made")).toBe("made");
});

test("made ids are header-safe, and no two of two sources are alike", () => {
  const [one, other] = [requestIdSource(), requestIdSource()];
  const ids = Array.from({ length: 100 }, () => [one(), other()]).flat();
  expect(new Set(ids).size).toBe(200);
  expect(ids.every(isHeaderSafe)).toBe(true);
});
