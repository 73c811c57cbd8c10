import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import fileDigest from "../../examples/tasks/file-digest.js";
import { contextOf } from "./context.js";

const examples = join(import.meta.dirname, "../../examples");
let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(examples, ".digest-"));
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

const digest = (path: string, ctx = contextOf()) => fileDigest.run({ path }, ctx);
function written(name: string, content: string): string {
  writeFileSync(join(folder, name), content);
  return join(basename(folder), name);
}

it("digests a file", async () => {
  const bytes = readFileSync(join(examples, "images/page.png"));
  const result = await digest("images/page.png");
  expect(result.bytes).toBe(bytes.length);
  expect(result.sha256).toBe(createHash("sha256").update(bytes).digest("hex"));
});

it.each([
  ["", 0],
  ["\n", 1],
  ["one", 1],
  ["one\n", 1],
  ["one\ntwo", 2],
  ["one\n\ntwo\n", 3],
])("%j has %i lines", async (content, lines) => {
  const path = written("lines.txt", content);
  expect(await digest(path)).toMatchObject({ path, bytes: content.length, lines });
});

it("reports progress chunk by chunk and stops at the signal", async () => {
  const path = written("large.txt", "x".repeat(300_000));
  const seen: unknown[] = [];
  await digest(
    path,
    contextOf(undefined, (value) => seen.push(value)),
  );
  expect(seen.at(-1)).toEqual({ bytes: 300_000, of: 300_000 });
  expect(seen.length).toBeGreaterThan(2);

  const stop = new AbortController();
  const ctx = contextOf(stop.signal, () => {
    stop.abort();
  });
  await expect(digest(path, ctx)).rejects.toThrow(/aborted/i);
});

it.each(["../package.json", "/etc/hostname", "images/../../package.json", "..", "way-out"])(
  "refuses %s, which is outside",
  async (path) => {
    if (path === "way-out") symlinkSync("/etc", join(folder, path));
    const asked = path === "way-out" ? join(basename(folder), path, "hostname") : path;
    await expect(digest(asked)).rejects.toMatchObject({ name: "FileRefused" });
  },
);

it("says what can't be opened or is no file", async () => {
  await expect(digest("none.txt")).rejects.toThrow("none.txt can't be opened");
  await expect(digest("images")).rejects.toThrow("images is not a file");
  const result = await fileDigest.input?.["~standard"].validate({ path: "a\0b" });
  expect(result?.issues?.[0]?.message).toBe("a path can't hold a NUL character");
});
