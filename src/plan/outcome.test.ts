import { expect, test } from "vitest";
import { listed } from "./outcome.js";

const file = (path: string) =>
  ({ path, from: null, change: "added", insertions: 1, deletions: 0 }) as const;

test("all files are listed while they have room, and then the first ones, with a note", () => {
  const files = Array.from({ length: 10 }, (_, index) => file(`f${String(index)}`));
  expect(listed(files)).toEqual({ files, notes: [] });
  expect(listed(files, 500)).toEqual({
    files: files.slice(0, 3),
    notes: ["10 files changed, of which the first 3 are listed; the patch has all"],
  });
});

test("the list of a whole tree stays below what a ledger keeps, however odd its names", () => {
  const files = Array.from({ length: 60_000 }, () => file("\u0001".repeat(200)));
  expect(JSON.stringify(listed(files).files).length).toBeLessThan(8 * 1024 * 1024);
});
