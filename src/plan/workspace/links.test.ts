import { expect, test } from "vitest";
import { leavesRoot } from "./links.js";

/** Whether a link leads out of a root that has these links besides. */
function leaves(
  link: string,
  target: string,
  links: Readonly<Record<string, string>> = {},
): Promise<boolean> {
  return leavesRoot(link, target, (path) => links[path] ?? null);
}

test.each([
  ["a", "b"],
  ["a", "."],
  ["d/a", ".."],
  ["d/e/a", "../../b/./c//d"],
  ["d/a", "nowhere/../../b"],
  ["a", "a"],
])("a link at %s to %s stays within", async (link, target) => {
  expect(await leaves(link, target)).toBe(false);
});

test.each([
  ["a", "/etc"],
  ["a", ".."],
  ["d/a", "../../b"],
  ["d/a", "../e/../../b"],
])("a link at %s to %s leads out", async (link, target) => {
  expect(await leaves(link, target)).toBe(true);
});

test("what lies behind another link counts from where that one leads", async () => {
  expect(await leaves("a", "deep/..", { deep: "x/y/z" })).toBe(false);
  expect(await leaves("x/y/a", "up/..", { "x/y/up": "../.." })).toBe(true);
  expect(await leaves("a", "out/b", { out: "/tmp" })).toBe(true);
});

test("a loop leads nowhere", async () => {
  expect(await leaves("a", "b", { a: "b", b: "a" })).toBe(false);
});
