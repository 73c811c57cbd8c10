/**
 * The folder that holds all sandboxes of a user. It may lie where everyone can write (`/tmp`), so it is
 * only used when it can't have been laid there by another user, and nobody else may look into it.
 */
import { chmod, mkdir, realpath, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, isAbsolute, join, relative } from "node:path";
import { JobtableError } from "../../job/errors.js";
import { codeOf } from "../../runtime/error-code.js";
import type { Repository } from "../git/repository.js";

/** `/tmp/jobtable-1000/sandboxes`, where the system's folder for such is `/tmp`. */
export function defaultSandboxRoot(): string {
  return join(tmpdir(), `jobtable-${String(process.geteuid?.() ?? "user")}`, "sandboxes");
}

/**
 * Makes it when it is missing.
 * @returns its path without links.
 * @throws JobtableError `invalid_workspace` when it can't be made, can't be trusted, or lies within the repository.
 */
export async function prepareSandboxRoot(root: string, repository: Repository): Promise<string> {
  const refused = (why: string, cause?: unknown): JobtableError =>
    new JobtableError(
      "invalid_workspace",
      `the folder for sandboxes ${JSON.stringify(root)} ${why}`,
      {
        cause,
      },
    );
  if (!isAbsolute(root)) throw refused("must be an absolute path");
  let real: string;
  try {
    await makeFolders(root, 0o700);
    real = await realpath(root);
  } catch (error) {
    throw refused(`can't be made (${String(error)}): name one that can`, error);
  }
  const { root: workTree, gitDir, commonDir } = repository;
  if ([workTree, gitDir, commonDir].some((folder) => isWithin(folder, real)))
    throw refused("lies within the repository: name one outside of it");
  const [own, above] = await Promise.all([stat(real), stat(dirname(real))]);
  const me = process.geteuid?.();
  const sticky = (above.mode & 0o1000) !== 0;
  const othersMayReplace = (above.mode & 0o022) !== 0 && !sticky;
  if (own.uid !== me || (above.uid !== me && above.uid !== 0) || othersMayReplace)
    throw refused("could be replaced by another user: name one in a folder of your own");
  if ((own.mode & 0o077) !== 0) await chmod(real, 0o700);
  return real;
}

/** Whether a path is a folder or lies in it. Both absolute and without links. */
export function isWithin(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way === "" || !(way === ".." || way.startsWith("../"));
}

/** Node's own recursive mkdir never ends where a folder answers ENOENT to it, as those of /proc do. */
export async function makeFolders(folder: string, mode: number): Promise<void> {
  try {
    await mkdir(folder, mode);
  } catch (error) {
    const code = codeOf(error);
    const parent = dirname(folder);
    if (code === "EEXIST" && (await stat(folder)).isDirectory()) return;
    if (code !== "ENOENT" || parent === folder) throw error;
    await makeFolders(parent, mode);
    await mkdir(folder, mode).catch((again: unknown) => {
      // Another process may have made it meanwhile.
      if (codeOf(again) !== "EEXIST") throw again;
    });
  }
}
