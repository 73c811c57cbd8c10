import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { applied, deadOwner, isGone, patchOf, workspaceAt } from "../../../test/plan/applying.js";
import { Scratch } from "../../../test/plan/scratch.js";
import { systemFiles } from "./files.js";
import { mayBeLeft } from "./left-behind.js";

let scratch: Scratch;
beforeEach(() => {
  scratch = new Scratch();
});
afterEach(() => {
  scratch.remove();
});

test("a workspace with what an apply left is found, one without is not, linked ones too", async () => {
  const root = scratch.repository("r", { a: "1\n" });
  const linked = scratch.path("linked");
  scratch.git(root, "worktree", "add", "-q", "--detach", linked);
  const { patch } = await patchOf(scratch, root, (dir) => writeFileSync(join(dir, "a"), "2\n"));
  for (const at of [root, linked]) {
    expect(await mayBeLeft(systemFiles, at)).toBe(false);
    const workspace = await workspaceAt(scratch, at);
    await (await applied(workspace, patch)).rollBack();
    expect(await mayBeLeft(systemFiles, at)).toBe(false);
    await workspace.apply(patch, { id: "a2", owner: deadOwner(), isGone });
    expect(await mayBeLeft(systemFiles, at)).toBe(true);
  }
});

test("where only git can tell it may be; where nothing is it is not", async () => {
  scratch.write(scratch.path("odd/a"), "");
  expect(await mayBeLeft(systemFiles, scratch.path("odd"))).toBe(true);
  expect(await mayBeLeft(systemFiles, scratch.path("nowhere"))).toBe(false);
});
