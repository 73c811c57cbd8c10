import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  applied,
  deadOwner,
  isGone,
  owner,
  patchOf,
  workspaceAt,
} from "../../../test/plan/applying.js";
import { Scratch } from "../../../test/plan/scratch.js";
import type { Workspace } from "../workspace/workspace.js";
import { WorkspaceBusy } from "./busy.js";
import { systemFiles } from "./files.js";
import { undisturbed } from "./undisturbed.js";

let scratch: Scratch;
let root: string;
let patch: Uint8Array;
let workspace: Workspace;
beforeEach(async () => {
  scratch = new Scratch();
  root = scratch.repository("r", { a: "1\n" });
  workspace = await workspaceAt(scratch, root);
  ({ patch } = await patchOf(scratch, root, (dir) => writeFileSync(join(dir, "a"), "2\n")));
});
afterEach(() => {
  scratch.remove();
});

function read(work: () => Promise<string>): Promise<string> {
  const gitDir = join(root, ".git");
  const repository = { root, gitDir, commonDir: gitDir };
  const context = { files: systemFiles, repository };
  return undisturbed(context, join(gitDir, "jobtable"), { owner, isGone }, work);
}

function content(): Promise<string> {
  return Promise.resolve(readFileSync(join(root, "a"), "utf8"));
}

test("what an apply changed meanwhile is read again", async () => {
  let reads = 0;
  const found = await read(async () => {
    const seen = await content();
    reads += 1;
    if (reads === 1) {
      await (await applied(workspace, patch)).commit();
      throw new Error("a file went while it was read");
    }
    return seen;
  });
  expect({ found, reads }).toEqual({ found: "2\n", reads: 2 });
});

test("while somebody applies nothing is read", async () => {
  const there = await applied(workspace, patch);
  await expect(read(content)).rejects.toBeInstanceOf(WorkspaceBusy);
  await there.rollBack();
  expect(await read(content)).toBe("1\n");
});

test("what a dead process left half-done is taken back before", async () => {
  const dead = await workspace.apply(patch, { id: "a1", owner: deadOwner(), isGone });
  expect(dead.kind).toBe("applied");
  expect(await read(content)).toBe("1\n");
});

test("what reading throws is thrown, and it gives up on applies that never end", async () => {
  await expect(read(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
  await expect(
    read(async () => {
      await (await applied(workspace, patch)).rollBack();
      return content();
    }),
  ).rejects.toMatchObject({ code: "sandbox_failed" });
});
