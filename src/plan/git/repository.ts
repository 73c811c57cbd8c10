/**
 * The repository that a path lies in, as git finds it, or one line that says why there is none to
 * work with. It is found once; later calls name its folders, so that no file that a step leaves
 * anywhere can lead git elsewhere.
 */
import { constants } from "node:fs";
import { access, realpath, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { isAbsolute, join } from "node:path";
import { JobtableError } from "../../job/errors.js";
import { codeOf } from "../../runtime/error-code.js";
import type { Environment } from "./environment.js";
import { checkVersion, type Git } from "./git.js";

export interface Repository {
  /** Of the working tree; absolute, without links. */
  readonly root: string;
  /** Of this working tree: a linked one has its own. Absolute. */
  readonly gitDir: string;
  /** What all working trees of the repository share. Absolute; often the same as `gitDir`. */
  readonly commonDir: string;
}

/** A folder of files, seen through a repository and an index: what a call of git works on. */
export interface WorkTree {
  readonly dir: string;
  readonly gitDir: string;
  readonly indexFile: string;
  /** Where new objects go; null: into the repository. */
  readonly objects: { readonly dir: string; readonly repository: string } | null;
}

export function inWorkTree(tree: WorkTree): { readonly cwd: string; readonly env: Environment } {
  const { dir, gitDir, indexFile, objects } = tree;
  const named = { GIT_DIR: gitDir, GIT_WORK_TREE: dir, GIT_INDEX_FILE: indexFile };
  if (objects === null) return { cwd: dir, env: named };
  const apart = {
    GIT_OBJECT_DIRECTORY: objects.dir,
    GIT_ALTERNATE_OBJECT_DIRECTORIES: quoted(objects.repository),
  };
  return { cwd: dir, env: { ...named, ...apart } };
}

/** The variable is a list with colons between, whose items may be quoted as in C. */
function quoted(path: string): string {
  const escaped = path.replaceAll(/[\\"]/g, "\\$&").replaceAll("\n", "\\n");
  return `"${escaped}"`;
}

/** @throws JobtableError `invalid_workspace`. */
export async function openRepository(git: Git, path: string): Promise<Repository> {
  const refused = (why: string, cause?: unknown): JobtableError =>
    new JobtableError("invalid_workspace", `the workspace ${JSON.stringify(path)} ${why}`, {
      cause,
    });
  if (process.platform === "win32")
    throw refused("can't be used: plans run on POSIX systems only (Linux, macOS, BSD)");
  if (!isAbsolute(path)) throw refused("must be named by an absolute path");
  await checkFolder(path, refused);
  await checkVersion(git, path);
  await checkInside(git, path, refused);
  const line = (...args: string[]): Promise<string> =>
    git.text({ args: ["rev-parse", ...args], cwd: path });
  const root = await realpath(await line("--show-toplevel"));
  const gitDir = await realpath(await line("--absolute-git-dir"));
  const common = await line("--git-common-dir");
  const commonDir = await realpath(isAbsolute(common) ? common : join(path, common));
  const head = await git.ask({ args: ["rev-parse", "--verify", "-q", "HEAD^{commit}"], cwd: root });
  if (head.code !== 0) throw refused("has no commit yet: make the first one");
  return { root, gitDir, commonDir };
}

type Refused = (why: string, cause?: unknown) => JobtableError;

async function checkFolder(path: string, refused: Refused): Promise<void> {
  try {
    if (!(await stat(path)).isDirectory()) throw refused("is not a folder");
    await access(path, constants.R_OK | constants.X_OK);
  } catch (error) {
    if (error instanceof JobtableError) throw error;
    throw refused(unreadable(error), error);
  }
}

function unreadable(error: unknown): string {
  const code = codeOf(error);
  switch (code) {
    case "ENOENT":
    case "ENOTDIR":
      return `is not there on this machine (${hostname()})`;
    case "EACCES":
    case "EPERM":
      return "can't be read: check its permissions";
    default:
      return `can't be read: ${String(error)}`;
  }
}

async function checkInside(git: Git, path: string, refused: Refused): Promise<void> {
  const args = ["rev-parse", "--is-inside-work-tree", "--is-bare-repository"];
  const { code, stdout, stderr } = await git.ask({ args, cwd: path });
  if (code !== 0) {
    if (stderr.includes("not a git repository")) throw refused("is not in a git repository");
    if (stderr.includes("dubious ownership") || stderr.includes("unsafe repository"))
      throw refused(
        "belongs to another user, so git refuses it: see safe.directory in `git help config`",
      );
    throw refused(`is refused by git: ${(stderr.trim().split("\n", 1)[0] ?? "").slice(0, 500)}`);
  }
  const [inside, bare] = stdout.toString("utf8").split("\n");
  if (inside === "true") return;
  throw refused(
    bare === "true"
      ? "is a bare repository: name a working tree"
      : "lies inside of a git folder: name the working tree",
  );
}
