import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { deadOwner, isGone, owner, patchOf, workspaceAt } from "../../../test/plan/applying.js";
import { gitView, Scratch, snapshot } from "../../../test/plan/scratch.js";
import {
  copyWorkspace,
  Passage,
  recoverCopy,
  type Stopped,
} from "../../../test/plan/stopped-states.js";
import type { Applied } from "./apply.js";
import { systemFiles } from "./files.js";

const dead = deadOwner();
let scratch: Scratch;
/** A repository, never touched; each test copies what it needs. */
let pristine: string;
let patch: Uint8Array;
let before: Record<string, string>;
let after: Record<string, string>;
/** What is left at each change of one apply that is committed. */
let states: readonly Stopped[];
let copies = 0;

/** Small, and with every kind of step: each is stopped at below. */
const FILES = {
  modified: "1\n",
  deleted: "1\n",
  "emptied/x": "1\n",
  "to-folder": "1\n",
  "to-file/x": "1\n",
  "to-link": "1\n",
};

beforeAll(async () => {
  scratch = new Scratch();
  pristine = scratch.repository("r", { ...FILES, bystander: "1\n" });
  scratch.write(join(pristine, "bystander"), "2\n");
  scratch.git(pristine, "add", "bystander");
  const made = await patchOf(scratch, pristine, editAll, gitView);
  patch = made.patch;
  before = snapshot(pristine);
  after = made.seen;
  states = await statesOf((applied) => applied.commit());
});
afterAll(() => {
  scratch.remove();
});

function fresh(): string {
  copies += 1;
  return scratch.path(`copy-${String(copies)}`);
}

function copyOf({ root }: Stopped): string {
  const copy = fresh();
  copyWorkspace(root, copy);
  return copy;
}

function wholeRepository(): string {
  const copy = fresh();
  cpSync(pristine, copy, { recursive: true, verbatimSymlinks: true });
  return copy;
}

function editAll(dir: string): void {
  writeFileSync(join(dir, "modified"), "2\n");
  rmSync(join(dir, "deleted"));
  rmSync(join(dir, "emptied"), { recursive: true });
  rmSync(join(dir, "to-folder"));
  scratch.write(join(dir, "to-folder/x"), "2\n");
  rmSync(join(dir, "to-file"), { recursive: true });
  scratch.write(join(dir, "to-file"), "2\n");
  rmSync(join(dir, "to-link"));
  symlinkSync("modified", join(dir, "to-link"));
  scratch.write(join(dir, "new/x"), "2\n", 0o755);
}

function isAfter(at: string): void {
  expect(gitView(at)).toEqual(after);
  expect(existsSync(join(at, "emptied"))).toBe(false);
}

/** What the process leaves at each change when it applies and then goes on like this. */
async function statesOf(goOn: (applied: Applied) => Promise<unknown>): Promise<readonly Stopped[]> {
  const root = wholeRepository();
  const passage = new Passage(root, fresh());
  const workspace = await workspaceAt(scratch, root, passage.files);
  const result = await workspace.apply(patch, { id: "a1", owner: dead, isGone });
  if (result.kind !== "applied") throw new Error(JSON.stringify(result));
  await goOn(result.applied);
  return passage.states;
}

/** A copy of the workspace where the patch is in place and not committed, and nobody is left to do it. */
function crashedCopy(): string {
  const last = states.find(({ change }) => COMMIT.test(change));
  if (last === undefined) throw new Error("never committed");
  return copyOf(last);
}

const COMMIT = /^move .*\/committed\.json$/;
const BEGIN = /^move .*\/journal\.json$/;
const ROLLED_BACK = { id: "a1", outcome: "rolled_back", edited: [] };

describe("a workspace whose apply was killed", () => {
  test("between or in the midst of any two changes is wholly as before, or wholly as after", async () => {
    expect(states.length).toBeGreaterThan(80);
    const outcomes = new Set<string>();
    for (const state of states) {
      const { change, earlier } = state;
      const copy = copyOf(state);
      const isCommitted = earlier.some((done) => COMMIT.test(done));
      for (const recovery of await recoverCopy(copy)) {
        const outcome = isCommitted ? "committed" : "rolled_back";
        expect(recovery, change).toEqual({ ...ROLLED_BACK, outcome });
        outcomes.add(outcome);
      }
      if (isCommitted) isAfter(copy);
      else expect(snapshot(copy), change).toEqual(before);
      expect(await recoverCopy(copy)).toEqual([]);
    }
    expect(outcomes.size).toBe(2);
  });

  test("while it was rolling back is wholly as before", async () => {
    for (const { root: copy, change } of await statesOf((applied) => applied.rollBack())) {
      await recoverCopy(copy);
      expect(snapshot(copy), change).toEqual(before);
    }
  });

  test("is put back although recovery is killed too, at any change", async () => {
    const begun = states.filter(
      ({ earlier }) =>
        earlier.some((done) => BEGIN.test(done)) && !earlier.some((done) => COMMIT.test(done)),
    );
    const chosen = begun.filter((_, index) => index % 6 === 0 || index === begun.length - 1);
    expect(chosen.length).toBeGreaterThan(4);
    for (const state of chosen) {
      const { change } = state;
      const copy = copyOf(state);
      const passage = new Passage(copy, fresh());
      expect(await recoverCopy(copy, passage.files, dead)).toEqual([ROLLED_BACK]);
      for (const second of passage.states) {
        await recoverCopy(second.root);
        expect(snapshot(second.root), `${change}, then ${second.change}`).toEqual(before);
      }
    }
  });

  test("is put back once when several do it at once", async () => {
    for (let round = 0; round < 10; round += 1) {
      const copy = crashedCopy();
      const all = await Promise.allSettled([1, 2, 3].map(() => recoverCopy(copy)));
      // The others came to nothing, or met the one that was at it.
      const done = all.flatMap((end) => (end.status === "fulfilled" ? end.value : []));
      expect(done).toEqual([ROLLED_BACK]);
      const faults = all.flatMap((end) => (end.status === "rejected" ? [String(end.reason)] : []));
      expect(faults.filter((fault) => !fault.startsWith("WorkspaceBusy"))).toEqual([]);
      expect(snapshot(copy)).toEqual(before);
    }
  });

  test("by SIGKILL is wholly as before or as after, and the next apply sees to it", async () => {
    const root = wholeRepository();
    scratch.write(scratch.path("patch"), patch);
    const child = resolve(import.meta.dirname, "../../../test/plan/apply-child.mjs");
    const env = JSON.stringify(scratch.env);
    const workspace = await workspaceAt(scratch, root);
    let killed = 0;
    for (let last = 5; ; last += 13) {
      const args = [child, root, scratch.path("patch"), String(last), env];
      const { signal, status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
      if (signal === null) {
        expect(status, stderr).toBe(0);
        break;
      }
      killed += 1;
      const result = await workspace.apply(patch, { id: "a2", owner, isGone });
      if (result.kind === "applied") {
        expect(result.recovered.every(({ outcome }) => outcome === "rolled_back")).toBe(true);
        isAfter(root);
        await result.applied.rollBack();
        expect(snapshot(root)).toEqual(before);
      } else {
        // It had been committed, so it does not fit again.
        expect(result.kind).toBe("conflicts");
        isAfter(root);
        scratch.git(root, "checkout", "-q", "HEAD", "--", ".");
        scratch.git(root, "clean", "-qfd");
        scratch.write(join(root, "bystander"), "2\n");
      }
    }
    expect(killed).toBeGreaterThan(5);
    isAfter(root);
  }, 60_000);

  test("keeps what was edited until the recovery, and tells where the originals are", async () => {
    const copy = crashedCopy();
    const at = (path: string): string => join(copy, path);
    writeFileSync(at("modified"), "edited\n");
    writeFileSync(at("deleted"), "back\n");
    writeFileSync(at("new/x"), "edited\n");
    rmSync(at("to-file"));
    renameSync(at("to-folder/x"), at("to-folder/y"));
    rmSync(at("to-link"));
    mkdirSync(at("to-link"));
    scratch.write(at("emptied"), "now a file\n");
    const kept = at(".git/jobtable/kept/a1");
    const left = (path: string, hasOriginal = true): unknown => ({
      path,
      inPlace: "edited",
      other: hasOriginal ? join(kept, path) : null,
    });
    const edited = [
      left("new/x", false),
      left("deleted"),
      left("emptied/x"),
      left("modified"),
      left("to-folder"),
      left("to-link"),
    ];
    expect(await recoverCopy(copy)).toEqual([{ ...ROLLED_BACK, edited }]);
    expect(Object.keys(gitView(copy))).toEqual([
      "bystander",
      "deleted",
      "emptied",
      "modified",
      "new/x",
      "to-file/x",
      "to-folder/y",
    ]);
    for (const [path, content] of [
      ["modified", "edited\n"],
      ["deleted", "back\n"],
      ["emptied", "now a file\n"],
    ] as const)
      expect(readFileSync(at(path), "utf8")).toBe(content);
    for (const path of ["deleted", "emptied/x", "modified", "to-folder", "to-link"])
      expect(readFileSync(join(kept, path), "utf8")).toBe("1\n");
    expect(await recoverCopy(copy)).toEqual([]);
  });

  test("tells what was edited also when the recovery that found it was killed", async () => {
    const copy = crashedCopy();
    writeFileSync(join(copy, "modified"), "edited\n");
    const passage = new Passage(copy, fresh());
    await recoverCopy(copy, passage.files, dead);
    for (const { root: second, change, earlier } of passage.states) {
      const recovered = await recoverCopy(second);
      // Once it is in the trash, the one who was killed had all but told it.
      if (!isSwept(earlier))
        expect(recovered, change).toMatchObject([{ id: "a1", edited: [{ path: "modified" }] }]);
      expect(readFileSync(join(second, "modified"), "utf8")).toBe("edited\n");
      expect(readFileSync(join(second, ".git/jobtable/kept/a1/modified"), "utf8")).toBe("1\n");
    }
  });

  test("is never written to through a link that came to stand in the way", async () => {
    const copy = crashedCopy();
    mkdirSync(scratch.path("outside"));
    writeFileSync(scratch.path("outside/x"), "2\n");
    for (const name of ["to-folder", "new"]) {
      rmSync(join(copy, name), { recursive: true });
      symlinkSync(scratch.path("outside"), join(copy, name));
    }
    symlinkSync(scratch.path("outside"), join(copy, "emptied"));
    const [recovery] = await recoverCopy(copy);
    expect(recovery?.edited.map(({ path }) => path)).toEqual(["emptied/x", "to-folder"]);
    expect(readdirSync(scratch.path("outside"))).toEqual(["x"]);
    expect(readFileSync(scratch.path("outside/x"), "utf8")).toBe("2\n");
  });

  test("is told of until it was written down", async () => {
    const copy = crashedCopy();
    const fault = new Error("the ledger is away");
    await expect(recoverCopy(copy, systemFiles, owner, () => Promise.reject(fault))).rejects.toBe(
      fault,
    );
    expect(snapshot(copy)).toEqual(before);
    expect(await recoverCopy(copy)).toEqual([ROLLED_BACK]);
    expect(await recoverCopy(copy)).toEqual([]);
  });

  test("on another host is left to it, and whoever asks is told so", async () => {
    const copy = crashedCopy();
    const lock = join(copy, ".git/jobtable/lock/1/owner.json");
    const owner = { ...dead, host: "elsewhere" };
    writeFileSync(lock, JSON.stringify({ owner, purpose: "a1" }));
    const there = snapshot(copy);
    const busy = { name: "WorkspaceBusy", folder: join(copy, ".git/jobtable/lock/1") };
    await expect(recoverCopy(copy)).rejects.toMatchObject(busy);
    expect(snapshot(copy)).toEqual(there);
  });

  test("with a journal that nobody can read is told so", async () => {
    const copy = crashedCopy();
    writeFileSync(join(copy, ".git/jobtable/applies/a1/journal.json"), "{");
    await expect(recoverCopy(copy)).rejects.toMatchObject({
      code: "apply_failed",
      message: expect.stringMatching(
        /^the journal in ".*\/applies\/a1" can't be read[^\n]*$/,
      ) as string,
    });
  });
});

/** Whether the journal's folder had been thrown away. */
function isSwept(earlier: readonly string[]): boolean {
  return earlier.some((done) => /^move .*\/trash\//.test(done));
}
