import { expect, test } from "vitest";
import { parseInstant } from "./instant.js";

test.each([
  ["2026-03-01T09:00:00Z", "2026-03-01T09:00:00.000Z"],
  ["2026-03-01t09:00:00.5z", "2026-03-01T09:00:00.500Z"],
  ["2026-03-01 09:00:00+05:30", "2026-03-01T03:30:00.000Z"],
  [" 2024-02-29T00:00:00-08:00 ", "2024-02-29T08:00:00.000Z"],
])("%s", (text, iso) => {
  expect(parseInstant(text)).toBe(Date.parse(iso));
});

test.each([
  "2026-03-01T09:00:00",
  "2026-03-01",
  "tomorrow",
  "1772355600",
  "2026-02-30T00:00:00Z",
  "2026-13-01T00:00:00Z",
  "2026-03-01T25:00:00Z",
  "2026-03-01T09:00:00+25:00",
  "",
])("%s is no time", (text) => {
  expect(parseInstant(text)).toBeNull();
});
