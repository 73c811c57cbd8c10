/**
 * Repositories of real git in temporary folders, and full snapshots of them. The user that owns them
 * has settings that would spoil what is read from git, were they heard.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  statfsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
} from "node:fs";
import {
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { GitHost } from "../../src/plan/git/git.js";
import { systemClock } from "../../src/runtime/clock.js";

/** Settings of a user with taste. */
const TASTE = `[user]
  name = User
  email = user@localhost
[init]
  defaultBranch = main
[diff]
  noprefix = true
  mnemonicPrefix = true
  renames = false
  context = 0
  external = /bin/false
  algorithm = histogram
  suppressBlankEmpty = true
[apply]
  whitespace = error
  ignoreWhitespace = change
[color]
  ui = always
[core]
  quotePath = true
  pager = /bin/false
  fsmonitor = /bin/false
  hooksPath = HOOKS
  safecrlf = true
  ignoreStat = true
[commit]
  gpgsign = true
[protocol "file"]
  allow = always
[submodule]
  recurse = true
`;

const SHARED_MEMORY = "/dev/shm";
const ENOUGH_BYTES = 1024 ** 3;

/** In memory, where there is room: what is tested waits for the disk often. */
function fastFolder(): string {
  if (!existsSync(SHARED_MEMORY)) return tmpdir();
  const { bavail, bsize } = statfsSync(SHARED_MEMORY);
  return bavail * bsize > ENOUGH_BYTES ? SHARED_MEMORY : tmpdir();
}

export class Scratch {
  readonly dir = realpathSync(mkdtempSync(join(fastFolder(), "jobtable-plan-")));
  readonly env: NodeJS.ProcessEnv;
  readonly host: GitHost;

  constructor() {
    const home = this.path("home");
    const hooks = this.path("hooks");
    mkdirSync(home);
    mkdirSync(hooks);
    for (const hook of ["post-checkout", "pre-commit", "post-index-change"])
      this.write(
        join(hooks, hook),
        `#!/bin/sh\necho ${hook} >> ${this.path("hooks-ran")}\nexit 1\n`,
        0o755,
      );
    writeFileSync(join(home, ".gitconfig"), TASTE.replace("HOOKS", hooks));
    this.env = { PATH: process.env["PATH"], HOME: home, GIT_CONFIG_NOSYSTEM: "1" };
    this.host = { env: this.env, clock: systemClock };
  }

  path(...names: string[]): string {
    return join(this.dir, ...names);
  }

  /** Makes the folders above too. */
  write(path: string, content: string | Uint8Array, mode = 0o644): void {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    chmodSync(path, mode);
  }

  link(path: string, target: string): void {
    mkdirSync(dirname(path), { recursive: true });
    symlinkSync(target, path);
  }

  /** As the user calls it, without the settings above. */
  git(cwd: string, ...args: string[]): string {
    const plain = [
      "-c",
      "core.hooksPath=/dev/null",
      "-c",
      "core.fsmonitor=",
      "-c",
      "core.ignoreStat=false",
    ];
    const quiet = [
      "-c",
      "commit.gpgsign=false",
      "-c",
      "core.safecrlf=false",
      "-c",
      "color.ui=never",
    ];
    const { status, stdout, stderr } = spawnSync("git", [...plain, ...quiet, ...args], {
      cwd,
      env: { ...this.env, LC_ALL: "C" },
      encoding: "utf8",
    });
    if (status !== 0) throw new Error(`git ${args.join(" ")}: ${stderr}`);
    return stdout;
  }

  /** A repository with these files in one commit. */
  repository(name: string, files: Readonly<Record<string, string>>, ...init: string[]): string {
    const root = this.path(name);
    mkdirSync(root, { recursive: true });
    this.git(root, "init", "-q", ...init);
    for (const [path, content] of Object.entries(files)) this.write(join(root, path), content);
    this.commit(root);
    return root;
  }

  commit(root: string): string {
    this.git(root, "add", "-A");
    this.git(root, "commit", "-q", "--allow-empty", "-m", "commit");
    return this.git(root, "rev-parse", "HEAD").trim();
  }

  remove(): void {
    rmSync(this.dir, { recursive: true, force: true });
  }
}

const GIT: ReadonlySet<string> = new Set([".git"]);
const NOT_THE_USERS: ReadonlySet<string> = new Set([...GIT, "objects", "worktrees", "jobtable"]);

/** Every file, link and folder below: `path` -> kind, mode and content. `.git` at any level is left out. */
export function snapshot(dir: string, leftOut: ReadonlySet<string> = GIT): Record<string, string> {
  return Object.fromEntries(
    walk(dir, "", leftOut).map((path): [string, string] => [path, describe(join(dir, path))]),
  );
}

/** Files and links alone, as git sees them: executable or not. */
export function gitView(dir: string): Record<string, string> {
  const all = Object.entries(snapshot(dir)).filter(([, text]) => !text.startsWith("folder"));
  return Object.fromEntries(
    all.map(([path, text]) => [
      path,
      text.replace(/^file (\d+)/, (_, mode: string) =>
        (parseInt(mode, 8) & 0o100) === 0 ? "file" : "program",
      ),
    ]),
  );
}

/** What of a git folder is the user's: all but objects, work trees of ours, and our own folder. */
export function gitState(gitDir: string): Record<string, string> {
  return snapshot(gitDir, NOT_THE_USERS);
}

/** @param leftOut names at the top; `.git` is at any level. */
function walk(dir: string, at: string, leftOut: ReadonlySet<string>): string[] {
  return readdirSync(join(dir, at), { withFileTypes: true })
    .filter(({ name }) => !leftOut.has(name))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = at === "" ? entry.name : `${at}/${entry.name}`;
      return entry.isDirectory() ? [path, ...walk(dir, path, GIT)] : [path];
    });
}

function describe(path: string): string {
  const found = lstatSync(path);
  const mode = (found.mode & 0o7777).toString(8);
  if (found.isSymbolicLink()) return `link ${readlinkSync(path)}`;
  if (found.isDirectory()) return `folder ${mode}`;
  if (!found.isFile()) return "special";
  return `file ${mode} ${createHash("sha256").update(readFileSync(path)).digest("hex")}`;
}
