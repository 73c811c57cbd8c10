/**
 * Submodules are repositories of their own, and a patch of the one around them can't carry their files.
 * In a sandbox their folders start empty. A step may fill them (`git submodule update --init`), as long
 * as it leaves the commit and the files as they are recorded.
 */
import { readdir } from "node:fs/promises";
import { codeOf } from "../../runtime/error-code.js";
import type { Git } from "../git/git.js";
import { shown } from "./inventory.js";
import { outcomeRefused } from "./outcome.js";

/** @param submodules commit by path. @throws JobtableError `outcome_refused` that names the first changed one. */
export async function refuseChangedSubmodules(
  git: Git,
  dir: string,
  submodules: ReadonlyMap<string, string>,
  signal: AbortSignal | undefined,
): Promise<void> {
  for (const [path, commit] of submodules) {
    const folder = Buffer.concat([Buffer.from(`${dir}/`), Buffer.from(path, "latin1")]);
    const names = await namesIn(folder);
    if (names === null) throw changed(path, "is no folder any more");
    if (names.length === 0) continue;
    if (!names.includes(".git")) throw changed(path, "has files that are not its own");
    const cwd = folder.toString("utf8");
    const head = await git.ask({ args: ["rev-parse", "--verify", "-q", "HEAD"], cwd, signal });
    if (head.stdout.toString("latin1").trim() !== commit)
      throw changed(path, "is at another commit");
    const args = [
      "status",
      "--porcelain",
      "-z",
      "--untracked-files=normal",
      "--ignore-submodules=none",
    ];
    const status = await git.run({ args, cwd, signal, maxBytes: MAX_STATUS_BYTES });
    if (status.length > 0) throw changed(path, "has changed files");
  }
}

/** Any change refuses the outcome; how many there are is not of interest. */
const MAX_STATUS_BYTES = 64 * 1024 * 1024;

/** Null: no folder stands there. None at all counts as an empty one. */
async function namesIn(folder: Buffer): Promise<string[] | null> {
  try {
    return await readdir(folder);
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT") return [];
    if (code === "ENOTDIR") return null;
    throw error;
  }
}

function changed(path: string, how: string): Error {
  return outcomeRefused(
    `the submodule ${shown(path)} ${how}: a patch can't carry that; change it in its own repository`,
  );
}
