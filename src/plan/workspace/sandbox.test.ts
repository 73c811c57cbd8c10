import { spawnSync } from "node:child_process";
import { appendFileSync, chmodSync, existsSync, lstatSync, mkdirSync } from "node:fs";
import { readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SmallDisk } from "../../../test/faults/stores/small-disk.js";
import { gitState, gitView, Scratch, snapshot } from "../../../test/plan/scratch.js";
import { systemProcesses } from "../../runtime/process-identity.js";
import type { LockHolder } from "../apply/lock.js";
import { cleanSandboxes } from "./clean-sandboxes.js";
import type { Sandbox, SandboxOptions } from "./sandbox.js";
import { openWorkspace } from "./workspace.js";

const { self: owner, isGone } = systemProcesses();

let scratch: Scratch;
let sandboxes: string;
beforeEach(() => {
  scratch = new Scratch();
  sandboxes = scratch.path("sandboxes");
});
afterEach(() => {
  scratch.remove();
});

async function open(root: string, options: Partial<SandboxOptions> = {}): Promise<Sandbox> {
  const workspace = await openWorkspace(root, scratch.host);
  return workspace.openSandbox({ base: "head", name: "s", root: sandboxes, owner, ...options });
}

function refusal(root: string): Promise<unknown> {
  return openWorkspace(root, scratch.host).then(
    () => null,
    (error: unknown) => error,
  );
}

const oneLine = (pattern: RegExp): unknown =>
  expect.stringMatching(new RegExp(`^.*${pattern.source}.*$`));

describe("a workspace", () => {
  test("is found from a folder within, through links, with odd names", async () => {
    const root = scratch.repository('it\'s "odd"\nname', { "d/a": "a\n" });
    scratch.link(scratch.path("link"), root);
    expect((await openWorkspace(join(root, "d"), scratch.host)).root).toBe(root);
    expect((await openWorkspace(scratch.path("link"), scratch.host)).root).toBe(root);
  });

  test("is refused in one line that says why", async () => {
    scratch.write(scratch.path("file"), "");
    mkdirSync(scratch.path("plain"));
    mkdirSync(scratch.path("fresh"));
    scratch.git(scratch.path("fresh"), "init", "-q");
    mkdirSync(scratch.path("bare"));
    scratch.git(scratch.path("bare"), "init", "-q", "--bare");
    const root = scratch.repository("r", { a: "a\n" });
    const cases: readonly (readonly [string, RegExp])[] = [
      [scratch.path("nowhere"), /is not there/],
      [scratch.path("file"), /is not a folder/],
      [scratch.path("plain"), /is not in a git repository/],
      [scratch.path("fresh"), /has no commit yet/],
      [scratch.path("bare"), /is a bare repository/],
      [join(root, ".git"), /lies inside of a git folder/],
      ["relative", /absolute path/],
    ];
    for (const [path, why] of cases)
      expect(await refusal(path)).toMatchObject({
        code: "invalid_workspace",
        message: oneLine(why),
      });
  });

  test("that may not be read is refused in one line", async () => {
    const root = scratch.repository("r", { a: "a\n" });
    chmodSync(root, 0o000);
    // Permissions don't hold root up, so it becomes nobody for a moment.
    const isRoot = process.geteuid?.() === 0;
    if (isRoot) process.seteuid?.(65_534);
    try {
      expect(await refusal(root)).toMatchObject({
        code: "invalid_workspace",
        message: oneLine(/can't be read: check its permissions/),
      });
    } finally {
      if (isRoot) process.seteuid?.(0);
      chmodSync(root, 0o755);
    }
  });

  test("of another user is refused as git refuses it", async () => {
    const root = scratch.repository("r", { a: "a\n" });
    // git's own switch for its tests; only it knows that the owner is another.
    scratch.write(
      scratch.path("bin", "git"),
      `#!/bin/sh\nGIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec ${which("git")} "$@"\n`,
      0o755,
    );
    const env = { ...scratch.env, PATH: `${scratch.path("bin")}:${scratch.env["PATH"] ?? ""}` };
    await expect(openWorkspace(root, { ...scratch.host, env })).rejects.toMatchObject({
      code: "invalid_workspace",
      message: oneLine(/belongs to another user/),
    });
  });

  test("may be a linked work tree, a submodule, or have its git folder elsewhere", async () => {
    const root = scratch.repository("r", { a: "a\n" });
    scratch.git(root, "worktree", "add", "-q", scratch.path("linked"));
    const apart = scratch.repository(
      "apart",
      { a: "a\n" },
      `--separate-git-dir=${scratch.path("gd")}`,
    );
    const outer = scratch.repository("outer", { b: "b\n" });
    scratch.git(outer, "submodule", "--quiet", "add", root, "sub");
    scratch.commit(outer);
    scratch.git(scratch.path(), "clone", "-q", "--bare", root, "bare.git");
    scratch.git(scratch.path("bare.git"), "worktree", "add", "-q", scratch.path("of-bare"));
    for (const at of [scratch.path("linked"), apart, join(outer, "sub"), scratch.path("of-bare")]) {
      const sandbox = await open(at);
      writeFileSync(join(sandbox.dir, "a"), "b\n");
      expect((await sandbox.collect()).files).toMatchObject([{ path: "a", change: "modified" }]);
      await sandbox.remove();
      expect(snapshot(at)).toMatchObject({ a: expect.stringContaining("file") as string });
    }
  });
});

describe("a sandbox of HEAD", () => {
  test("has the files of the commit, and leaves everything of the user's as it is", async () => {
    const root = scratch.repository("r", { a: "a\n", "d/b": "b\n", ".gitignore": "ign\n" });
    scratch.write(join(root, "d/b"), "stashed\n");
    scratch.git(root, "stash", "-q");
    scratch.write(join(root, "a"), "dirty\n");
    scratch.write(join(root, "staged"), "staged\n");
    scratch.git(root, "add", "staged");
    scratch.write(join(root, "untracked"), "u\n");
    scratch.write(join(root, "ign"), "i\n");
    // Entries whose times differ invite git to refresh the index.
    spawnSync("touch", [join(root, "d/b")]);
    const before = [snapshot(root), gitState(join(root, ".git"))];
    for (const base of ["head", "working-tree"] as const) {
      const sandbox = await open(root, { base });
      expect(snapshot(root)).toEqual(before[0]);
      expect(Object.keys(gitView(sandbox.dir))).toEqual(
        base === "head"
          ? [".gitignore", "a", "d/b"]
          : [".gitignore", "a", "d/b", "staged", "untracked"],
      );
      expect(readFileSync(join(sandbox.dir, "a"), "utf8")).toBe(
        base === "head" ? "a\n" : "dirty\n",
      );
      expect(await sandbox.collect()).toMatchObject({ files: [], bytes: 0 });
      await sandbox.remove();
      await sandbox.remove();
      expect([snapshot(root), gitState(join(root, ".git"))]).toEqual(before);
      expect(readdirSync(sandboxes)).toEqual([]);
      expect(existsSync(join(root, ".git/worktrees"))).toBe(false);
    }
    expect(existsSync(scratch.path("hooks-ran"))).toBe(false);
  });

  test("names are odd, and so is the repository's", async () => {
    const names = [
      "-f",
      "--",
      'a "b"',
      "c'd",
      "e\nf",
      "\ttab",
      "ü/ö",
      "日本",
      "back\\slash",
      " ",
      "a b /c ",
    ];
    const root = scratch.repository("w 'x'\n\"y\":z", { "-a": "1\n", "n\nl": "2\n" });
    const sandbox = await open(root);
    for (const name of names) scratch.write(join(sandbox.dir, name), `${name}\n`);
    rmSync(join(sandbox.dir, "-a"));
    renameSync(join(sandbox.dir, "n\nl"), join(sandbox.dir, 'm\n"l'));
    const { files, patch, bytes } = await sandbox.collect();
    expect(files.map(({ path }) => path).sort()).toEqual([...names, "-a", 'm\n"l'].sort());
    expect(files).toContainEqual(
      expect.objectContaining({ path: 'm\n"l', change: "renamed", from: "n\nl" }),
    );
    expect(bytes).toBe(patch.length);
  });

  test("is refused for links that leave it", async () => {
    for (const [link, target] of [
      ["d/out", "../../x"],
      ["abs", "/etc/passwd"],
      ["two", "d/../../x"],
    ] as const) {
      const root = scratch.repository(`r-${link.replace("/", "-")}`, { a: "a\n", "d/b": "" });
      scratch.link(join(root, link), target);
      scratch.commit(root);
      await expect(open(root)).rejects.toMatchObject({
        code: "invalid_workspace",
        message: oneLine(new RegExp(`"${link}" leads out of the workspace, to "${target}"`)),
      });
    }
    expect(readdirSync(sandboxes)).toEqual([]);
  });

  test("keeps links that stay within", async () => {
    const root = scratch.repository("r", { a: "a\n" });
    scratch.link(join(root, "d/e/l"), "../../a");
    scratch.link(join(root, "dangling"), "d/nothing/../here");
    scratch.link(join(root, "loop"), "loop");
    scratch.commit(root);
    const sandbox = await open(root);
    expect(gitView(sandbox.dir)).toEqual(gitView(root));
    expect((await sandbox.collect()).files).toEqual([]);
  });

  test("has empty folders for submodules, and says so", async () => {
    const inner = scratch.repository("inner", { x: "x\n" });
    const root = scratch.repository("r", { a: "a\n" });
    scratch.git(root, "submodule", "--quiet", "add", inner, "sub");
    scratch.commit(root);
    const sandbox = await open(root, { base: "working-tree" });
    expect(sandbox.notes).toEqual(['the submodule "sub" is empty here']);
    expect(readdirSync(join(sandbox.dir, "sub"))).toEqual([]);
    expect((await sandbox.collect()).files).toEqual([]);
    rmSync(join(sandbox.dir, "sub"), { recursive: true });
    expect((await sandbox.collect()).files).toEqual([]);
    scratch.git(sandbox.dir, "submodule", "--quiet", "update", "--init");
    expect((await sandbox.collect()).files).toEqual([]);
    writeFileSync(join(sandbox.dir, "sub/x"), "y\n");
    const refused = (why: string): object => ({
      code: "outcome_refused",
      message: expect.stringContaining(why) as string,
    });
    await expect(sandbox.collect()).rejects.toMatchObject(refused('"sub" has changed files'));
    scratch.commit(join(sandbox.dir, "sub"));
    await expect(sandbox.collect()).rejects.toMatchObject(refused('"sub" is at another commit'));
    rmSync(join(sandbox.dir, "sub"), { recursive: true });
    scratch.write(join(sandbox.dir, "sub/file"), "");
    await expect(sandbox.collect()).rejects.toMatchObject(refused("files that are not its own"));
    rmSync(join(sandbox.dir, "sub"), { recursive: true });
    scratch.write(join(sandbox.dir, "sub"), "");
    await expect(sandbox.collect()).rejects.toMatchObject(refused("is no folder any more"));
    await sandbox.remove();
    expect(readdirSync(join(root, "sub"))).toContain("x");
  });

  test("never has the folder of Jobtable's own", async () => {
    const root = scratch.repository("r", {
      ".jobtable/jobs.db": "x",
      a: "a\n",
      "d/.jobtable/x": "",
    });
    const before = gitState(join(root, ".git"));
    for (const base of ["head", "working-tree"] as const) {
      const sandbox = await open(root, { base });
      expect(Object.keys(gitView(sandbox.dir))).toEqual(["a", "d/.jobtable/x"]);
      scratch.write(join(sandbox.dir, ".jobtable/jobs.db"), "y");
      expect((await sandbox.collect()).files).toEqual([]);
      await sandbox.remove();
    }
    expect(gitState(join(root, ".git"))).toEqual(before);
  });

  test("stands in a folder that nobody else can look into or replace", async () => {
    const root = scratch.repository("r", { a: "a\n" });
    const sandbox = await open(root, { root: scratch.path("x/y") });
    expect(lstatSync(scratch.path("x/y")).mode & 0o777).toBe(0o700);
    expect(sandbox.dir.startsWith(scratch.path("x/y/s-"))).toBe(true);
    mkdirSync(scratch.path("open"));
    chmodSync(scratch.path("open"), 0o777);
    for (const [at, why] of [
      [join(root, "d"), /within the repository/],
      [join(root, ".git/d"), /within the repository/],
      [scratch.path("open/d"), /could be replaced by another user/],
      [scratch.path("r/a/d"), /can't be made/],
      ["/proc/no/such", /can't be made/],
      ["rel", /absolute path/],
    ] as const)
      await expect(open(root, { root: at })).rejects.toMatchObject({
        code: "invalid_workspace",
        message: oneLine(why),
      });
  });

  test("that is aborted leaves nothing", async () => {
    const root = scratch.repository("r", { a: "a\n" });
    const before = snapshot(join(root, ".git"));
    scratch.write(join(root, ".git/info/attributes"), "* filter=slow\n");
    const started = scratch.path("started");
    spawnSync("mkfifo", [started]);
    scratch.git(root, "config", "filter.slow.smudge", `echo > ${started}; exec tail -f /dev/null`);
    const abort = new AbortController();
    const work = open(root, { signal: abort.signal });
    // Opening the other end waits for the filter.
    const { readFile } = await import("node:fs/promises");
    await readFile(started);
    abort.abort(new Error("enough"));
    await expect(work).rejects.toThrow("enough");
    expect(readdirSync(sandboxes)).toEqual([]);
    expect(Object.keys(snapshot(join(root, ".git")))).toEqual(
      [
        ...Object.keys(before).filter((path) => path !== "info/attributes"),
        "info/attributes",
      ].sort(),
    );
  });

  test("that finds no room is told of in one line, and leaves nothing", async () => {
    const root = scratch.repository("r", { a: "a\n" });
    const disk = SmallDisk.mount(scratch.path("small"), 1);
    try {
      mkdirSync(scratch.path("small/s"), { mode: 0o700 });
      disk.fill();
      await expect(open(root, { root: scratch.path("small/s") })).rejects.toMatchObject({
        code: "sandbox_failed",
        message: oneLine(/the sandbox can't be made: .*(ENOSPC|No space left)/),
      });
      expect(readdirSync(scratch.path("small/s"))).toEqual([]);
      expect(existsSync(join(root, ".git/worktrees"))).toBe(false);
    } finally {
      disk.unmount();
    }
  });

  test("can be made many times at once", async () => {
    const root = scratch.repository("r", { a: "a\n" });
    const opened = await Promise.all(Array.from({ length: 8 }, () => open(root)));
    expect(new Set(opened.map(({ dir }) => dir)).size).toBe(8);
    await Promise.all(opened.map((sandbox) => sandbox.remove()));
    expect(readdirSync(sandboxes)).toEqual([]);
  });
});

describe("a sandbox of the working tree", () => {
  test("has changed, deleted, new and renamed files, kinds and modes", async () => {
    const root = scratch.repository("r", {
      gone: "1\n",
      "gone-staged": "1\n",
      mode: "1\n",
      "file-folder": "1\n",
      "folder/file": "1\n",
      "to-link": "1\n",
      changed: "1\n",
      "staged-then-changed": "1\n",
      "d/repo-here": "1\n",
    });
    rmSync(join(root, "gone"));
    scratch.git(root, "rm", "-q", "gone-staged");
    chmodSync(join(root, "mode"), 0o755);
    rmSync(join(root, "file-folder"));
    scratch.write(join(root, "file-folder/x/y"), "y\n");
    rmSync(join(root, "folder"), { recursive: true });
    scratch.write(join(root, "folder"), "now a file\n");
    rmSync(join(root, "to-link"));
    scratch.link(join(root, "to-link"), "changed");
    // Of the same length, within the tick of the index: only the content tells.
    writeFileSync(join(root, "changed"), "2\n");
    writeFileSync(join(root, "staged-then-changed"), "22\n");
    scratch.git(root, "add", "staged-then-changed");
    writeFileSync(join(root, "staged-then-changed"), "333\n");
    const sandbox = await open(root, { base: "working-tree" });
    expect(gitView(sandbox.dir)).toEqual(gitView(root));
    expect((await sandbox.collect()).files).toEqual([]);
  });

  test("is made in the midst of a merge, and where files were only announced", async () => {
    const root = scratch.repository("r", { a: "1\n" });
    scratch.git(root, "checkout", "-q", "-b", "other");
    scratch.write(join(root, "a"), "2\n");
    scratch.commit(root);
    scratch.git(root, "checkout", "-q", "main");
    scratch.write(join(root, "a"), "3\n");
    scratch.commit(root);
    expect(() => scratch.git(root, "merge", "other")).toThrow();
    scratch.write(join(root, "new"), "n\n");
    scratch.git(root, "add", "-N", "new");
    const before = [snapshot(root), gitState(join(root, ".git"))];
    const sandbox = await open(root, { base: "working-tree" });
    expect(gitView(sandbox.dir)).toEqual(gitView(root));
    expect([snapshot(root), gitState(join(root, ".git"))]).toEqual(before);
  });

  test("leaves out what it can't hold, and says so", async () => {
    const root = scratch.repository("r", { a: "a\n" });
    scratch.repository("r/inner", { x: "x\n" });
    mkdirSync(join(root, "fresh"));
    scratch.git(join(root, "fresh"), "init", "-q");
    spawnSync("mkfifo", [join(root, "fifo")]);
    const sandbox = await open(root, { base: "working-tree" });
    expect(readdirSync(sandbox.dir).sort()).toEqual([".git", "a"]);
    expect(sandbox.notes).toEqual([
      'the repository "fresh" within the workspace is not here',
      'the repository "inner" within the workspace is not here',
    ]);
  });

  test("is refused where files can't be copied", async () => {
    const root = scratch.repository("r", { a: "a\n" });
    rmSync(join(root, "a"));
    spawnSync("mkfifo", [join(root, "a")]);
    await expect(open(root, { base: "working-tree" })).rejects.toMatchObject({
      code: "invalid_workspace",
      message: oneLine(/"a" is neither file nor link/),
    });
    rmSync(join(root, "a"));
    scratch.link(join(root, "untracked"), "/etc");
    await expect(open(root, { base: "working-tree" })).rejects.toMatchObject({
      message: oneLine(/"untracked" leads out of the workspace, to "\/etc"/),
    });
    rmSync(join(root, "untracked"));
    scratch.write(join(root, "git~1"), "");
    await expect(open(root, { base: "working-tree" })).rejects.toMatchObject({
      message: oneLine(/git~1/),
    });
  });

  test("of a repository with SHA-256, a split index and a sparse checkout", async () => {
    const files = { "in/a": "a\n", "out/b": "b\n" };
    const root = scratch.repository("r", files, "--object-format=sha256");
    scratch.git(root, "update-index", "--split-index");
    scratch.git(root, "sparse-checkout", "set", "in");
    expect(existsSync(join(root, "out"))).toBe(false);
    scratch.write(join(root, "in/c"), "c\n");
    const before = [snapshot(root), gitState(join(root, ".git"))];
    const sandbox = await open(root, { base: "working-tree" });
    expect(sandbox.baseCommit).toMatch(/^[0-9a-f]{64}$/);
    expect(gitView(sandbox.dir)).toEqual(gitView(root));
    scratch.write(join(sandbox.dir, "in/a"), "aa\n");
    expect((await sandbox.collect()).files).toMatchObject([{ path: "in/a" }]);
    await sandbox.remove();
    expect([snapshot(root), gitState(join(root, ".git"))]).toEqual(before);
  });
});

describe("what a sandbox collects", () => {
  test("is every kind of change, committed or not", async () => {
    const long = Array.from({ length: 50 }, (_, i) => `line ${String(i)}\n`).join("");
    const root = scratch.repository("r", {
      deleted: "x\n",
      modified: "1\n2\n3\n",
      mode: "m\n",
      renamed: long,
      "moved-edited": long + "a\n",
      "to-link": "t\n",
      "file-folder": "f\n",
      "folder/a": "1\n",
      "committed-gone": "g\n",
      binary: "b\0\n",
    });
    const sandbox = await open(root);
    const at = (path: string): string => join(sandbox.dir, path);
    rmSync(at("deleted"));
    writeFileSync(at("modified"), "1\ntwo\n3\n4\n");
    chmodSync(at("mode"), 0o755);
    renameSync(at("renamed"), at("new-name"));
    renameSync(at("moved-edited"), at("moved"));
    appendFileSync(at("moved"), "b\n");
    rmSync(at("to-link"));
    symlinkSync("modified", at("to-link"));
    rmSync(at("file-folder"));
    scratch.write(at("file-folder/in"), "in\n");
    rmSync(at("folder"), { recursive: true });
    scratch.write(at("folder"), "file\n");
    writeFileSync(at("binary"), "c\0\n");
    scratch.write(at("committed"), "c\n");
    rmSync(at("committed-gone"));
    scratch.commit(sandbox.dir);
    scratch.write(at("staged"), "s\n");
    scratch.git(sandbox.dir, "add", "staged");
    writeFileSync(at("staged"), "s\nt\n");
    scratch.write(at("empty"), "");
    scratch.write(at("program"), "#!/bin/sh\n", 0o755);
    mkdirSync(at("no-files"));
    const { files, patch } = await sandbox.collect();
    const line = (
      path: string,
      change: string,
      insertions: number | null,
      deletions: number | null,
      from: string | null = null,
    ): unknown => ({ path, from, change, insertions, deletions });
    expect(files).toEqual([
      line("binary", "modified", null, null),
      line("committed", "added", 1, 0),
      line("committed-gone", "deleted", 0, 1),
      line("deleted", "deleted", 0, 1),
      line("empty", "added", 0, 0),
      line("file-folder", "deleted", 0, 1),
      line("file-folder/in", "added", 1, 0),
      line("folder", "added", 1, 0),
      line("folder/a", "deleted", 0, 1),
      line("mode", "mode", 0, 0),
      line("modified", "modified", 2, 1),
      line("moved", "renamed", 1, 0, "moved-edited"),
      line("new-name", "renamed", 0, 0, "renamed"),
      line("program", "added", 1, 0),
      line("staged", "added", 2, 0),
      line("to-link", "type", 1, 1),
    ]);
    scratch.write(scratch.path("patch"), patch);
    scratch.git(root, "apply", "--index", scratch.path("patch"));
    expect(gitView(root)).toEqual(gitView(sandbox.dir));
  });

  test("neither more nor less because steps used git in odd ways", async () => {
    const root = scratch.repository("r", { a: "a\n", b: "b\n" });
    scratch.write(join(root, ".gitignore"), "*.log\nb\n");
    scratch.commit(root);
    const sandbox = await open(root);
    const git = (...args: string[]): string => scratch.git(sandbox.dir, ...args);
    // Known to the base, ignored, and unchanged: no change.
    git("rm", "-q", "--cached", "b");
    writeFileSync(join(sandbox.dir, "a"), "c\n");
    git("update-index", "--assume-unchanged", "a");
    scratch.write(join(sandbox.dir, "ignored.log"), "");
    scratch.write(join(sandbox.dir, "forced.log"), "f\n");
    git("add", "-f", "forced.log");
    scratch.write(join(sandbox.dir, "committed.log"), "f\n");
    git("add", "-f", "committed.log");
    git("checkout", "-q", "--orphan", "elsewhere");
    const paths = async (): Promise<string[]> =>
      (await sandbox.collect()).files.map(({ path }) => path);
    expect(await paths()).toEqual(["a", "committed.log", "forced.log"]);
    git("commit", "-q", "-m", "x");
    git("rm", "-q", "--cached", "committed.log");
    expect(await paths()).toEqual(["a", "committed.log", "forced.log"]);
    rmSync(join(sandbox.dir, "committed.log"));
    expect(await paths()).toEqual(["a", "forced.log"]);
    rmSync(join(sandbox.dir, ".git"));
    expect(await paths()).toEqual(["a", "forced.log"]);
    await sandbox.remove();
    expect(existsSync(join(root, ".git/worktrees"))).toBe(false);
  });

  test("keeps line endings, encodings and filters apart from content", async () => {
    const root = scratch.repository("r", {
      ".gitattributes": "*.crlf eol=crlf\n*.up filter=up\n*.utf16 working-tree-encoding=UTF-16LE\n",
    });
    scratch.git(root, "config", "core.autocrlf", "true");
    scratch.git(root, "config", "filter.up.clean", "tr A-Z a-z");
    scratch.git(root, "config", "filter.up.smudge", "tr a-z A-Z");
    scratch.git(root, "config", "filter.up.required", "true");
    scratch.write(join(root, "auto.txt"), "1\r\n2\r\n");
    scratch.write(join(root, "x.up"), "LOUD\r\n");
    scratch.write(join(root, "y.utf16"), Buffer.from("a\r\nb\r\n", "utf16le"));
    scratch.commit(root);
    const sandbox = await open(root);
    expect(gitView(sandbox.dir)).toEqual({
      ...gitView(root),
      ".gitattributes": expect.anything() as unknown,
    });
    expect((await sandbox.collect()).files).toEqual([]);
    appendFileSync(join(sandbox.dir, "auto.txt"), "3\r\n");
    appendFileSync(join(sandbox.dir, "x.up"), "MORE\r\n");
    appendFileSync(join(sandbox.dir, "y.utf16"), Buffer.from("c\r\n", "utf16le"));
    const { patch, files } = await sandbox.collect();
    expect(files).toMatchObject([
      { path: "auto.txt", insertions: 1, deletions: 0 },
      { path: "x.up", insertions: 1, deletions: 0 },
      { path: "y.utf16", insertions: 1, deletions: 0 },
    ]);
    expect(Buffer.from(patch).toString()).toContain("\n+more\n");
    expect(Buffer.from(patch).toString()).not.toContain("\r");
  });

  test("is refused where no patch can carry it", async () => {
    const root = scratch.repository("r", { a: "a\n", "d/b": "b\n", ".gitignore": "ign*\n" });
    const cases: readonly (readonly [string, (dir: string) => unknown, RegExp])[] = [
      [
        "absolute",
        (dir) => symlinkSync("/etc", join(dir, "l")),
        /"l" leads out of the workspace, to "\/etc"/,
      ],
      ["upwards", (dir) => symlinkSync("../..", join(dir, "d/l")), /"d\/l" leads out/],
      [
        "by way of another",
        (dir) => {
          symlinkSync("..", join(dir, "d/up"));
          symlinkSync("up/../x", join(dir, "d/l"));
        },
        /"d\/l" leads out/,
      ],
      [
        "repository",
        (dir) =>
          scratch.repository(join("sandboxes", dir.slice(sandboxes.length), "emb"), { x: "" }),
        /"emb" is a repository of its own/,
      ],
      [
        "fresh repository",
        (dir) => spawnSync("git", ["init", "-q", "e"], { cwd: dir }),
        /"e" is a repository of its own/,
      ],
      [
        "forced repository",
        (dir) => {
          scratch.repository(join("sandboxes", dir.slice(sandboxes.length), "ign-r"), { x: "" });
          scratch.git(dir, "add", "-f", "ign-r");
        },
        /"ign-r" is a repository of its own/,
      ],
      [
        "no text",
        (dir) =>
          writeFileSync(Buffer.concat([Buffer.from(`${dir}/`), Buffer.from([0x61, 0xff])]), ""),
        /"a\u00ff" is not in UTF-8/,
      ],
      [
        "fifo for a file",
        (dir) => {
          rmSync(join(dir, "a"));
          spawnSync("mkfifo", [join(dir, "a")]);
        },
        /"a" is neither file, folder nor link/,
      ],
      [
        "fifo that git reads",
        (dir) => spawnSync("mkfifo", [join(dir, "d/.gitignore")]),
        /"d\/.gitignore" is neither/,
      ],
      ["name that git refuses", (dir) => writeFileSync(join(dir, "git~1"), ""), /git~1/],
    ];
    for (const [name, act, why] of cases) {
      const sandbox = await open(root);
      act(sandbox.dir);
      await expect(sandbox.collect(), name).rejects.toMatchObject({
        code: "outcome_refused",
        message: oneLine(why),
      });
      await sandbox.remove();
    }
  });

  test("does not see FIFOs and sockets, nor folders without files", async () => {
    const root = scratch.repository("r", { a: "a\n" });
    const sandbox = await open(root);
    spawnSync("mkfifo", [join(sandbox.dir, "fifo")]);
    mkdirSync(join(sandbox.dir, "d/e"), { recursive: true });
    // A name that is no text, of a folder that git has no file of.
    mkdirSync(Buffer.concat([Buffer.from(`${sandbox.dir}/`), Buffer.from([0xff])]));
    expect((await sandbox.collect()).files).toEqual([]);
    await sandbox.remove();
    expect(existsSync(sandbox.dir)).toBe(false);
  });

  test("is refused when it is too large", async () => {
    const root = scratch.repository("r", { a: "a\n" });
    const sandbox = await open(root);
    // Text, since a binary file of one byte again and again packs to nothing.
    writeFileSync(join(sandbox.dir, "large"), Buffer.alloc(65 * 1024 * 1024, "0123456789abcde\n"));
    await expect(sandbox.collect()).rejects.toMatchObject({
      code: "outcome_refused",
      message: oneLine(/a patch of more than 67108864 bytes/),
    });
    spawnSync("truncate", ["-s", "2G", join(sandbox.dir, "large")]);
    await expect(sandbox.collect()).rejects.toMatchObject({ message: oneLine(/2147483648 bytes/) });
    expect(existsSync(join(root, ".git/objects/pack"))).toBe(true);
  });

  test("leaves no objects in the user's repository", async () => {
    const root = scratch.repository("r", { a: "a\n" });
    const sandbox = await open(root);
    scratch.write(join(sandbox.dir, "new"), "new\n");
    const before = snapshot(join(root, ".git/objects"));
    expect((await sandbox.collect()).files).toHaveLength(1);
    expect(snapshot(join(root, ".git/objects"))).toEqual(before);
  });

  test("ends with the signal", async () => {
    const root = scratch.repository("r", { a: "a\n" });
    const sandbox = await open(root);
    const signal = AbortSignal.abort(new Error("enough"));
    await expect(sandbox.collect({ signal })).rejects.toThrow("enough");
  });
});

test("files that git is told not to look at are in a copy of the working tree, as they lie there", async () => {
  const names = ["assumed", "skipped", "both", "deleted", "sparse"];
  const root = scratch.repository("r", Object.fromEntries(names.map((name) => [name, "1\n"])));
  scratch.git(root, "update-index", "--assume-unchanged", "assumed", "both", "deleted");
  scratch.git(root, "update-index", "--skip-worktree", "skipped", "both", "sparse");
  const index = readFileSync(join(root, ".git/index"));
  for (const name of ["assumed", "skipped", "both"]) writeFileSync(join(root, name), "2\n");
  for (const name of ["deleted", "sparse"]) rmSync(join(root, name));
  const sandbox = await open(root, { base: "working-tree" });
  const found = readdirSync(sandbox.dir).filter((name) => name !== ".git");
  expect(found).toEqual(["assumed", "both", "skipped", "sparse"]);
  for (const name of found)
    expect(readFileSync(join(sandbox.dir, name), "utf8")).toBe(name === "sparse" ? "1\n" : "2\n");
  expect(readFileSync(join(root, ".git/index"))).toEqual(index);
});

describe("sandboxes of dead processes", () => {
  const dead = { ...owner, pid: spawnSync("true").pid, pidStamp: "" };

  test("are removed with all that belongs to them, others are not", async () => {
    const root = scratch.repository("r", { a: "a\n" });
    const lost = await open(root, { owner: dead });
    const foreign = await open(root, { owner: { ...dead, host: "elsewhere" } });
    const mine = await open(root);
    mkdirSync(join(lost.dir, "closed"));
    writeFileSync(join(lost.dir, "closed/x"), "");
    chmodSync(join(lost.dir, "closed"), 0o500);
    expect(await cleanSandboxes({ root: sandboxes, ends: { isGone } })).toEqual([
      { id: lost.id, workspace: root, fault: null },
    ]);
    expect(existsSync(lost.dir)).toBe(false);
    expect(readdirSync(join(root, ".git/worktrees")).sort()).toEqual([foreign.id, mine.id].sort());
    expect(await cleanSandboxes({ root: sandboxes, ends: { isGone } })).toEqual([]);
    expect((await mine.collect()).files).toEqual([]);
    expect(readdirSync(sandboxes)).toHaveLength(6);
  });

  test("are removed where nobody can see the process, once the job has ended that they were made for", async () => {
    const root = scratch.repository("r", { a: "a\n" });
    const foreign = { ...dead, host: "elsewhere" };
    const recover = { owner: foreign, isGone };
    const ended = await open(root, { owner: foreign, recover: { ...recover, jobId: "ended" } });
    await open(root, { owner: foreign, recover: { ...recover, jobId: "runs" } });
    await open(root, { owner: foreign });
    const isOver = ({ purpose }: LockHolder): Promise<boolean> =>
      Promise.resolve(purpose === "ended");
    expect(await cleanSandboxes({ root: sandboxes, ends: { isGone, isOver } })).toEqual([
      { id: ended.id, workspace: root, fault: null },
    ]);
  });

  test("are removed when their repository is gone, or git's folder for them or theirs is", async () => {
    const repositories = ["r1", "r2", "r3", "r4"].map((name) =>
      scratch.repository(name, { a: "a\n" }),
    );
    const [gone, half, pulled] = await Promise.all(
      repositories.map((root) => open(root, { owner: dead })),
    );
    if (gone === undefined || half === undefined || pulled === undefined)
      throw new Error("too few");
    rmSync(scratch.path("r1"), { recursive: true });
    rmSync(scratch.path("r2/.git/worktrees", half.id, "gitdir"));
    rmSync(pulled.dir, { recursive: true });
    expect(await cleanSandboxes({ root: sandboxes, ends: { isGone } })).toHaveLength(4);
    expect(readdirSync(sandboxes)).toEqual([]);
    for (const name of ["r2", "r3", "r4"])
      expect(existsSync(scratch.path(name, ".git/worktrees"))).toBe(false);
  });

  test("are left alone where nobody knows what they are", async () => {
    const root = scratch.repository("r", { a: "a\n" });
    const sandbox = await open(root, { owner: dead });
    scratch.write(join(sandboxes, "x.json"), "{");
    scratch.write(join(sandboxes, "y.json"), JSON.stringify({ version: 1, owner: {} }));
    mkdirSync(join(sandboxes, "z"));
    expect(await cleanSandboxes({ root: sandboxes, ends: { isGone } })).toHaveLength(1);
    expect(existsSync(sandbox.dir)).toBe(false);
    expect(readdirSync(sandboxes).sort()).toEqual(["x.json", "y.json", "z"]);
    expect(await cleanSandboxes({ root: scratch.path("nowhere"), ends: { isGone } })).toEqual([]);
  });

  test("a work tree of the user's with the same name stays", async () => {
    const root = scratch.repository("r", { a: "a\n" });
    const sandbox = await open(root, { owner: dead });
    writeFileSync(join(root, ".git/worktrees", sandbox.id, "gitdir"), "/mnt/usb/.git\n");
    await cleanSandboxes({ root: sandboxes, ends: { isGone } });
    expect(readdirSync(join(root, ".git/worktrees"))).toEqual([sandbox.id]);
  });

  test("are forgotten by git when all of their root is lost, and others' are not", async () => {
    const root = scratch.repository("r", { a: "a\n" });
    const lost = await open(root, { owner: dead });
    const foreign = await open(root, { owner: { ...dead, host: "elsewhere" } });
    const mine = await open(root);
    const users = scratch.path("users");
    scratch.git(root, "worktree", "add", "-q", "--detach", users);
    for (const path of [sandboxes, users]) rmSync(path, { recursive: true });
    const next = await open(root, { recover: { owner, isGone } });
    expect(readdirSync(join(root, ".git/worktrees")).sort()).toEqual(
      [foreign.id, mine.id, next.id, "users"].sort(),
    );
    expect(lost.id).not.toBe(next.id);
  });

  test("one that can't be removed is told of, and keeps no other one", async () => {
    const root = scratch.repository("r", { a: "a\n" });
    const stuck = await open(root, { owner: dead, name: "a" });
    const other = await open(root, { owner: dead, name: "b" });
    // As files of another user would: nobody removes a folder as a file.
    scratch.write(join(sandboxes, `${stuck.id}.json.new`, "x"), "");
    const cleaned = await cleanSandboxes({ root: sandboxes, ends: { isGone } });
    expect(cleaned).toEqual([
      { id: stuck.id, workspace: root, fault: expect.any(Error) as Error },
      { id: other.id, workspace: root, fault: null },
    ]);
    expect(existsSync(other.dir)).toBe(false);
  });

  test("two clean at once", async () => {
    const root = scratch.repository("r", { a: "a\n" });
    await open(root, { owner: dead });
    const cleaned = await Promise.all(
      [1, 2].map(() => cleanSandboxes({ root: sandboxes, ends: { isGone } })),
    );
    expect(cleaned.flat().length).toBeGreaterThan(0);
    expect(readdirSync(sandboxes)).toEqual([]);
  });
});

function which(program: string): string {
  return spawnSync("sh", ["-c", `command -v ${program}`], { encoding: "utf8" }).stdout.trim();
}
