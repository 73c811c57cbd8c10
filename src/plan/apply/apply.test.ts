import { spawnSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
} from "node:fs";
import {
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SmallDisk } from "../../../test/faults/stores/small-disk.js";
import { applied, isGone, owner, patchOf, workspaceAt } from "../../../test/plan/applying.js";
import { tapped } from "../../../test/plan/tapped-files.js";
import { gitState, gitView, Scratch, snapshot } from "../../../test/plan/scratch.js";

let scratch: Scratch;
beforeEach(() => {
  scratch = new Scratch();
});
afterEach(() => {
  scratch.remove();
});

/** All of a workspace that is the user's, git's part included. */
function everything(root: string): unknown {
  return [snapshot(root), gitState(join(root, ".git"))];
}

const LONG = Array.from({ length: 60 }, (_, i) => `line ${String(i)}\n`).join("");

/** Every kind of change at once. */
const BEFORE = {
  deleted: "x\n",
  modified: LONG,
  mode: "m\n",
  renamed: LONG,
  "moved-edited": LONG + "a\n",
  "to-link": "t\n",
  "file-folder": "f\n",
  "folder/a": "1\n",
  "folder/deep/b": "1\n",
  "emptied/x/y": "y\n",
  binary: "b\0\n",
  "-dash": "d\n",
  'q"uo\nte': "q\n",
  "ünï/日本": "u\n",
};

function editAll(dir: string): void {
  const at = (path: string): string => join(dir, path);
  rmSync(at("deleted"));
  writeFileSync(at("modified"), LONG.replace("line 30\n", "line thirty\n"));
  chmodSync(at("mode"), 0o755);
  mkdirSync(at("new/er"), { recursive: true });
  renameSync(at("renamed"), at("new/er/name"));
  renameSync(at("moved-edited"), at("moved"));
  appendFileSync(at("moved"), "b\n");
  rmSync(at("to-link"));
  symlinkSync("modified", at("to-link"));
  rmSync(at("file-folder"));
  scratch.write(at("file-folder/in/it"), "in\n");
  rmSync(at("folder"), { recursive: true });
  scratch.write(at("folder"), "file\n", 0o755);
  rmSync(at("emptied"), { recursive: true });
  writeFileSync(at("binary"), "c\0\n");
  scratch.write(at("empty"), "");
  appendFileSync(at("-dash"), "more\n");
  renameSync(at('q"uo\nte'), at("q\t\\"));
  appendFileSync(at("ünï/日本"), "ü\n");
  symlinkSync("nowhere", at("dangling"));
}

/** A workspace that is dirty in every way a user's can be. */
function dirtyWorkspace(): string {
  const root = scratch.repository("r", { ...BEFORE, bystander: "1\n", ".gitignore": "*.log\n" });
  scratch.link(join(root, "link"), "bystander");
  scratch.commit(root);
  scratch.write(join(root, "bystander"), "stashed\n");
  scratch.git(root, "stash", "-q");
  scratch.write(join(root, "bystander"), "2\n");
  scratch.git(root, "add", "bystander");
  scratch.write(join(root, "bystander"), "3\n");
  scratch.write(join(root, "staged"), "s\n");
  scratch.git(root, "add", "staged");
  scratch.write(join(root, "untracked/file"), "u\n");
  scratch.write(join(root, "x.log"), "ignored\n");
  chmodSync(join(root, "modified"), 0o640);
  return root;
}

describe("apply", () => {
  test("makes of the workspace what the sandbox was, and nothing else", async () => {
    const root = dirtyWorkspace();
    const { patch, seen, files } = await patchOf(scratch, root, editAll, gitView);
    expect(new Set(files.map(({ change }) => change)).size).toBe(6);
    const workspace = await workspaceAt(scratch, root);
    const before = everything(root);
    expect(await workspace.checkApply(patch)).toEqual({ kind: "fits" });
    expect(everything(root)).toEqual(before);
    await (await applied(workspace, patch)).commit();
    const { "x.log": log, ...after } = gitView(root);
    expect(log).toBeDefined();
    expect(after).toEqual(seen);
    expect(gitState(join(root, ".git"))).toEqual((before as unknown[])[1]);
    // As git does it: folders go with their last file.
    expect(existsSync(join(root, "emptied"))).toBe(false);
    expect(lstatSync(join(root, "modified")).mode & 0o777).toBe(0o640);
    expect(readdirSync(join(root, ".git/jobtable"))).not.toContain("trash");
    expect(readdirSync(join(root, ".git/jobtable/applies"))).toEqual([]);
  });

  test("is rolled back to exactly what was", async () => {
    const root = dirtyWorkspace();
    const { patch } = await patchOf(scratch, root, editAll);
    const workspace = await workspaceAt(scratch, root);
    chmodSync(join(root, "emptied/x"), 0o750);
    utimesSync(join(root, "deleted"), 1_000_000_000, 1_000_000_000);
    const before = everything(root);
    const there = await applied(workspace, patch);
    expect(everything(root)).not.toEqual(before);
    expect(await there.rollBack()).toEqual([]);
    expect(await there.rollBack()).toEqual([]);
    expect(everything(root)).toEqual(before);
    expect(statSync(join(root, "deleted")).mtimeMs).toBe(1_000_000_000_000);
    expect(() => there.commit()).toThrow("was rolled back");
    // And it can be done again.
    await (await applied(workspace, patch)).commit();
  });

  test("of no change does nothing", async () => {
    const root = dirtyWorkspace();
    const { patch } = await patchOf(scratch, root, () => undefined);
    const before = everything(root);
    const workspace = await workspaceAt(scratch, root);
    expect(await workspace.checkApply(patch)).toEqual({ kind: "fits" });
    await (await applied(workspace, patch)).commit();
    expect(everything(root)).toEqual(before);
  });

  test("fits beside other changes of the same file", async () => {
    const root = scratch.repository("r", { a: LONG });
    const { patch } = await patchOf(scratch, root, (dir) =>
      writeFileSync(join(dir, "a"), LONG.replace("line 50\n", "line fifty\n")),
    );
    writeFileSync(join(root, "a"), "first\n" + LONG);
    await (await applied(await workspaceAt(scratch, root), patch)).commit();
    expect(readFileSync(join(root, "a"), "utf8")).toBe(
      "first\n" + LONG.replace("line 50\n", "line fifty\n"),
    );
  });

  test("says where it does not fit, all of it, and changes nothing", async () => {
    const root = scratch.repository("r", {
      "a: b": LONG,
      gone: "1\n",
      binary: "b\0",
      kind: "1\n",
      "below/x": "1\n",
      removed: "1\n",
      fits: "1\n",
      'n\n"l': "1\n",
      "folder-here": "1\n",
    });
    scratch.commit(root);
    const { patch } = await patchOf(scratch, root, (dir) => {
      writeFileSync(join(dir, "a: b"), LONG.replace("line 30\n", "line thirty\n"));
      for (const name of ["gone", "kind", "fits", "below/x", 'n\n"l', "folder-here"])
        writeFileSync(join(dir, name), "2\n");
      writeFileSync(join(dir, "binary"), "c\0");
      rmSync(join(dir, "removed"));
      for (const name of ["new", "new-folder", "way/new", "link/new", "fifo", "empty-folder"])
        scratch.write(join(dir, name), "n\n");
    });
    const at = (path: string): string => join(root, path);
    writeFileSync(at("a: b"), LONG.replace("line 31\n", "line thirty-one\n"));
    rmSync(at("gone"));
    writeFileSync(at("binary"), "d\0");
    rmSync(at("kind"));
    symlinkSync("fits", at("kind"));
    rmSync(at("below"), { recursive: true });
    scratch.write(at("below"), "");
    writeFileSync(at("removed"), "1\nmore\n");
    writeFileSync(at('n\n"l'), "3\n");
    scratch.write(at("new"), "");
    scratch.write(at("new-folder/stranger"), "");
    scratch.write(at("way"), "");
    mkdirSync(scratch.path("outside"));
    symlinkSync(scratch.path("outside"), at("link"));
    spawnSync("mkfifo", [at("fifo")]);
    mkdirSync(at("empty-folder/in"), { recursive: true });
    rmSync(at("folder-here"));
    mkdirSync(at("folder-here"));
    const before = everything(root);
    const workspace = await workspaceAt(scratch, root);
    const fit = await workspace.checkApply(patch);
    expect(fit).toEqual({
      kind: "conflicts",
      conflicts: [
        ["a: b", 28, "the lines that the patch changes are not there"],
        ["below/x", null, 'lies below "below", which is no folder here'],
        ["binary", null, "has other content"],
        ["fifo", null, "is neither file, folder nor link here"],
        ["folder-here", null, "is of another kind here: file, link or folder"],
        ["gone", null, "is not there"],
        ["kind", null, "is of another kind here: file, link or folder"],
        ["link/new", null, 'lies below "link", which is no folder here'],
        ['n\n"l', 1, "the lines that the patch changes are not there"],
        ["new", null, "exists already"],
        ["removed", 1, "the lines that the patch changes are not there"],
        ["way/new", null, 'lies below "way", which is no folder here'],
      ].map(([file, line, reason]) => ({ file, line, reason })),
    });
    expect(await workspace.apply(patch, { id: "a1", owner, isGone })).toEqual({
      ...fit,
      recovered: [],
    });
    expect(everything(root)).toEqual(before);
    expect(readdirSync(scratch.path("outside"))).toEqual([]);
    for (const path of [
      "a: b",
      "below",
      "binary",
      "fifo",
      "folder-here",
      "gone",
      "kind",
      "link",
      'n\n"l',
      "new",
      "removed",
      "way",
    ])
      rmSync(at(path), { recursive: true, force: true });
    scratch.git(root, "checkout", "-q", "--", ".");
    // A folder that holds files is seen when all else fits; an empty one makes room.
    expect(await workspace.checkApply(patch)).toEqual({
      kind: "conflicts",
      conflicts: [
        {
          file: "new-folder",
          line: null,
          reason: 'is a folder here, with "new-folder/stranger" in it',
        },
      ],
    });
    rmSync(at("new-folder"), { recursive: true });
    const clean = everything(root);
    const there = await applied(workspace, patch);
    expect(readFileSync(at("empty-folder"), "utf8")).toBe("n\n");
    await there.rollBack();
    expect(everything(root)).toEqual(clean);
  });

  test("does not fit twice", async () => {
    const root = scratch.repository("r", BEFORE);
    const { patch } = await patchOf(scratch, root, editAll);
    const workspace = await workspaceAt(scratch, root);
    await (await applied(workspace, patch)).commit();
    const before = everything(root);
    expect(await workspace.apply(patch, { id: "a2", owner, isGone })).toMatchObject({
      kind: "conflicts",
      conflicts: expect.arrayContaining([
        { file: "empty", line: null, reason: "exists already" },
      ]) as unknown,
    });
    expect(everything(root)).toEqual(before);
  });

  test("keeps line endings, encodings and filters as the workspace has them", async () => {
    const root = scratch.repository("r", {
      ".gitattributes": "*.crlf eol=crlf\n*.utf16 working-tree-encoding=UTF-16LE\n",
      "d/.gitattributes": "*.up filter=up\n",
    });
    scratch.git(root, "config", "core.autocrlf", "true");
    scratch.git(root, "config", "filter.up.clean", "tr A-Z a-z");
    scratch.git(root, "config", "filter.up.smudge", "tr a-z A-Z");
    scratch.git(root, "config", "filter.up.required", "true");
    const at = (path: string): string => join(root, path);
    scratch.write(at("auto.txt"), "1\r\n2\r\n");
    scratch.write(at("d/x.up"), "LOUD\r\n");
    scratch.write(at("y.utf16"), Buffer.from("a\r\nb\r\n", "utf16le"));
    scratch.write(at("z.crlf"), "1\r\n");
    scratch.commit(root);
    const edit = (dir: string): void => {
      appendFileSync(join(dir, "auto.txt"), "3\r\n");
      appendFileSync(join(dir, "d/x.up"), "MORE\r\n");
      appendFileSync(join(dir, "y.utf16"), Buffer.from("c\r\n", "utf16le"));
      appendFileSync(join(dir, "z.crlf"), "2\r\n");
      scratch.write(join(dir, "d/new.up"), "NEW\r\n");
    };
    const { patch, seen } = await patchOf(scratch, root, edit, gitView);
    const before = everything(root);
    const there = await applied(await workspaceAt(scratch, root), patch);
    expect({ ...gitView(root), ...attributes(seen) }).toEqual(seen);
    await there.rollBack();
    expect(everything(root)).toEqual(before);
    scratch.git(root, "config", "core.autocrlf", "input");
    writeFileSync(at("auto.txt"), "1\n2\n");
    await (await applied(await workspaceAt(scratch, root), patch)).commit();
    expect(readFileSync(at("auto.txt"), "utf8")).toBe("1\n2\n3\n");
    expect(readFileSync(at("d/new.up"), "utf8")).toBe("NEW\n");
  });

  test("works with SHA-256, in a linked work tree, and with the git folder on another disk", async () => {
    const sha256 = scratch.repository("sha256", BEFORE, "--object-format=sha256");
    scratch.git(sha256, "worktree", "add", "-q", scratch.path("linked"));
    const far = join(mkdtempSync(join(farFrom(scratch.dir), "jobtable-plan-")), "git");
    const apart = scratch.repository("apart", BEFORE, `--separate-git-dir=${far}`);
    try {
      for (const root of [sha256, scratch.path("linked"), apart]) {
        const { patch, seen } = await patchOf(scratch, root, editAll, gitView);
        const workspace = await workspaceAt(scratch, root);
        const before = snapshot(root);
        await (await applied(workspace, patch)).rollBack();
        expect(snapshot(root)).toEqual(before);
        await (await applied(workspace, patch)).commit();
        expect(gitView(root)).toEqual(seen);
      }
    } finally {
      rmSync(dirname(far), { recursive: true });
    }
  });

  test("leaves submodules alone, and takes no patch that does not", async () => {
    const inner = scratch.repository("inner", { x: "x\n" });
    const root = scratch.repository("r", { a: "a\n" });
    scratch.git(root, "submodule", "--quiet", "add", inner, "sub");
    scratch.commit(root);
    const { patch } = await patchOf(scratch, root, (dir) => writeFileSync(join(dir, "a"), "b\n"));
    const workspace = await workspaceAt(scratch, root);
    await (await applied(workspace, patch)).commit();
    expect(readdirSync(join(root, "sub")).sort()).toEqual([".git", "x"]);
    const other = Buffer.from(
      `diff --git a/sub b/sub\nindex ${"1".repeat(40)}..${"2".repeat(40)} 160000\n--- a/sub\n+++ b/sub\n@@ -1 +1 @@\n-Subproject commit ${"1".repeat(40)}\n+Subproject commit ${"2".repeat(40)}\n`,
    );
    await expect(workspace.checkApply(other)).rejects.toMatchObject({
      code: "apply_failed",
      message: "the patch can't be used: it changes a submodule",
    });
  });

  test("takes no patch that names what no plan may touch, or that is none", async () => {
    const root = scratch.repository("r", { a: "a\n" });
    scratch.link(join(root, "up"), ".");
    const workspace = await workspaceAt(scratch, root);
    const newFile = (path: string, mode = "100644", content = "x"): Buffer =>
      Buffer.from(
        `diff --git a/${path} b/${path}\nnew file mode ${mode}\n--- /dev/null\n+++ b/${path}\n@@ -0,0 +1 @@\n+${content}\n\\ No newline at end of file\n`,
      );
    for (const [patch, why] of [
      [newFile("../x"), "where no plan may write"],
      [newFile(".git/hooks/x"), "where no plan may write"],
      [newFile("d/.GIT/x"), "where no plan may write"],
      [newFile(".jobtable/jobs.db"), "where no plan may write"],
      [
        newFile("l", "120000", "/etc/passwd"),
        'its symbolic link "l" leads out of the workspace, to "/etc/passwd"',
      ],
      [newFile("d/l", "120000", "../up/../x"), "leads out"],
      [Buffer.from("not a patch\n"), "No valid patches in input"],
      [newFile("b").subarray(0, -40), "corrupt patch"],
    ] as const)
      await expect(workspace.checkApply(patch), why).rejects.toMatchObject({
        code: "apply_failed",
        message: expect.stringContaining(why) as string,
      });
    expect(await workspace.checkApply(newFile("up/x"))).toMatchObject({
      conflicts: [{ file: "up/x", reason: 'lies below "up", which is no folder here' }],
    });
  });

  test("is busy while another one is neither committed nor rolled back", async () => {
    const root = scratch.repository("r", { a: "a\n" });
    const { patch } = await patchOf(scratch, root, (dir) => scratch.write(join(dir, "b"), "b\n"));
    const [one, two] = [await workspaceAt(scratch, root), await workspaceAt(scratch, root)];
    const there = await applied(one, patch);
    const held = { holder: { owner, purpose: "a1" }, folder: join(root, ".git/jobtable/lock/1") };
    expect(await two.apply(patch, { id: "a2", owner, isGone })).toEqual({ kind: "busy", ...held });
    await expect(two.recover({ owner, isGone })).rejects.toMatchObject(held);
    await expect(two.requireSettled({ isGone })).rejects.toThrow(
      "another process has the workspace",
    );
    await there.rollBack();
    await two.requireSettled({ isGone });
    await (await applied(two, patch, "a2")).commit();
    expect(readFileSync(join(root, "b"), "utf8")).toBe("b\n");
  });

  test("that can't be committed is taken back, and says so", async () => {
    const root = scratch.repository("r", BEFORE);
    const { patch } = await patchOf(scratch, root, editAll);
    const before = everything(root);
    const files = tapped((name, path) => {
      if (name === "move" && path.endsWith("/committed.json")) throw noRoom();
    });
    const there = await applied(await workspaceAt(scratch, root, files), patch);
    writeFileSync(join(root, "modified"), "mine\n");
    const kept = join(root, ".git/jobtable/kept/a1/modified");
    await expect(there.commit()).rejects.toMatchObject({
      code: "apply_failed",
      message: `the patch can't be committed (Error: ENOSPC), and was taken back; your version of modified is ${kept}`,
    });
    expect(everything(root)).toEqual(before);
    expect(readFileSync(kept, "utf8")).toBe("mine\n");
    const again = await workspaceAt(scratch, root);
    expect(await again.recover({ owner, isGone })).toEqual([]);
    await (await applied(again, patch, "a2")).rollBack();
  });

  test("that is committed, with a disk that fails right then, is in place, and says so", async () => {
    const root = scratch.repository("r", BEFORE);
    const { patch } = await patchOf(scratch, root, editAll);
    let isCommitted = false;
    const files = tapped((name, path) => {
      if (name === "sync" && isCommitted) throw noRoom();
      if (name === "move" && path.endsWith("/committed.json")) isCommitted = true;
    });
    const there = await applied(await workspaceAt(scratch, root, files), patch);
    const after = everything(root);
    await expect(there.commit()).rejects.toThrow("but is in place");
    expect(everything(root)).toEqual(after);
    expect(await (await workspaceAt(scratch, root)).recover({ owner, isGone })).toEqual([
      { id: "a1", outcome: "committed", edited: [] },
    ]);
  });

  test("ends with the signal, and everything is as it was", async () => {
    const root = scratch.repository("r", BEFORE);
    const { patch } = await patchOf(scratch, root, editAll);
    const before = everything(root);
    const reason = new Error("enough");
    for (const after of [0, 3, 10, 20]) {
      const abort = new AbortController();
      let moves = 0;
      // Counted are changes of the workspace itself.
      const files = tapped((name, path) => {
        if (name === "move" && !path.includes("/.git/")) moves += 1;
        if (moves === after) abort.abort(reason);
      });
      const workspace = await workspaceAt(scratch, root, files);
      const work = workspace.apply(patch, { id: "a1", owner, isGone, signal: abort.signal });
      if (after === 20) await expect(work).resolves.toMatchObject({ kind: "applied" });
      else await expect(work).rejects.toBe(reason);
      if (after < 20) expect(everything(root)).toEqual(before);
    }
  });

  test("notices what is changed while files are put in place, and keeps it", async () => {
    const root = scratch.repository("r", BEFORE);
    const { patch } = await patchOf(scratch, root, editAll);
    const before = snapshot(root);
    let done = false;
    const files = tapped((name, path) => {
      if (done || name !== "remove" || path.includes("/.git/")) return;
      done = true;
      writeFileSync(join(root, "modified"), "by someone\n");
    });
    const workspace = await workspaceAt(scratch, root, files);
    expect(await workspace.apply(patch, { id: "a1", owner, isGone })).toEqual({
      kind: "conflicts",
      conflicts: [
        {
          file: "modified",
          line: null,
          reason: "was changed while the patch was being put in place",
        },
      ],
      recovered: [],
    });
    expect(readFileSync(join(root, "modified"), "utf8")).toBe("by someone\n");
    expect({ ...snapshot(root), modified: "" }).toEqual({ ...before, modified: "" });
  });

  test("that was committed and not recorded elsewhere is told of until it is", async () => {
    const root = scratch.repository("r", BEFORE);
    const { patch } = await patchOf(scratch, root, editAll);
    const workspace = await workspaceAt(scratch, root);
    const there = await applied(workspace, patch);
    const fault = new Error("no room in the ledger");
    await there.commit(() => Promise.reject(fault));
    const after = everything(root);
    const told: unknown[] = [];
    const recover = (mayRecord: boolean): Promise<unknown> =>
      workspace.recover({
        owner,
        isGone,
        note: (recovery) => {
          told.push(recovery);
          return mayRecord ? Promise.resolve(true) : Promise.reject(fault);
        },
      });
    const committed = { id: "a1", outcome: "committed", edited: [] };
    await expect(recover(false)).rejects.toBe(fault);
    expect(await recover(true)).toEqual([committed]);
    expect(await recover(true)).toEqual([]);
    expect(told).toEqual([committed, committed]);
    expect(everything(root)).toEqual(after);
    let recorded = 0;
    const { patch: more } = await patchOf(scratch, root, (dir) => {
      scratch.write(join(dir, "more"), "");
    });
    const next = await applied(workspace, more, "a2");
    const record = async (): Promise<void> => {
      // It is there, and is not to be taken back any more.
      expect(readFileSync(join(root, "more"), "utf8")).toBe("");
      recorded += 1;
    };
    await next.commit(record);
    await next.commit(record);
    expect(recorded).toBe(1);
    expect(await recover(true)).toEqual([]);
  });

  test("rolls back what steps changed since, and keeps their version", async () => {
    const root = scratch.repository("r", BEFORE);
    const { patch } = await patchOf(scratch, root, editAll);
    const before = everything(root);
    const there = await applied(await workspaceAt(scratch, root), patch);
    writeFileSync(join(root, "modified"), "formatted\n");
    writeFileSync(join(root, "file-folder/in/it"), "formatted too\n");
    rmSync(join(root, "-dash"));
    rmSync(join(root, "ünï"), { recursive: true });
    const kept = join(root, ".git/jobtable/kept/a1");
    expect(await there.rollBack()).toEqual([
      { path: "file-folder/in/it", inPlace: "original", other: join(kept, "file-folder/in/it") },
      { path: "modified", inPlace: "original", other: join(kept, "modified") },
    ]);
    expect(everything(root)).toEqual(before);
    expect(readFileSync(join(kept, "modified"), "utf8")).toBe("formatted\n");
    expect(readFileSync(join(kept, "file-folder/in/it"), "utf8")).toBe("formatted too\n");
  });

  test("rolls back around what can't be taken away", async () => {
    const root = scratch.repository("r", BEFORE);
    const { patch } = await patchOf(scratch, root, editAll);
    const there = await applied(await workspaceAt(scratch, root), patch);
    scratch.write(join(root, "file-folder/stranger"), "s\n");
    rmSync(join(root, "empty"));
    mkdirSync(join(root, "empty"));
    const kept = join(root, ".git/jobtable/kept/a1");
    expect(await there.rollBack()).toEqual([
      { path: "empty", inPlace: "edited", other: null },
      { path: "file-folder", inPlace: "edited", other: join(kept, "file-folder") },
    ]);
    expect(readdirSync(join(root, "file-folder"))).toEqual(["stranger"]);
    expect(readFileSync(join(kept, "file-folder"), "utf8")).toBe("f\n");
  });

  test("on a full disk fails in one line, and everything is as it was", async () => {
    for (const where of ["git", "workspace"] as const) {
      const disk = SmallDisk.mount(scratch.path(where), 4);
      try {
        const gitDir = where === "git" ? join(disk.path, "git") : scratch.path("gd");
        const name = where === "git" ? "w" : `${where}/w`;
        const root = scratch.repository(name, BEFORE, `--separate-git-dir=${gitDir}`);
        const { patch } = await patchOf(scratch, root, (dir) => {
          editAll(dir);
          writeFileSync(join(dir, "large"), Buffer.alloc(2_000_000, "0123456789abcde\n"));
        });
        disk.fill();
        const before = [snapshot(root), gitState(gitDir)];
        const workspace = await workspaceAt(scratch, root);
        await expect(workspace.apply(patch, { id: "a1", owner, isGone })).rejects.toMatchObject({
          code: "apply_failed",
          message: expect.stringMatching(
            /^the patch can't be applied: .*(ENOSPC|No space left)[^\n]*$/,
          ) as string,
        });
        expect([snapshot(root), gitState(gitDir)]).toEqual(before);
        disk.makeRoom();
        await (await applied(workspace, patch, "a2")).commit();
        expect(statSync(join(root, "large")).size).toBe(2_000_000);
      } finally {
        disk.unmount();
      }
    }
  });
});

/** On another disk where there is one. */
function farFrom(dir: string): string {
  const { dev } = statSync(dir);
  return (
    ["/dev/shm", tmpdir()].find((it) => existsSync(it) && statSync(it).dev !== dev) ?? tmpdir()
  );
}

function attributes(seen: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(seen).filter(([path]) => path.endsWith(".gitattributes")),
  );
}

function noRoom(): Error {
  return Object.assign(new Error("ENOSPC"), { code: "ENOSPC", syscall: "rename" });
}
