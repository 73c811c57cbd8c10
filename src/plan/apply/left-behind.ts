/**
 * Whether an apply may have left something in a workspace, found out without git: who looks after all
 * workspaces of a store would start thousands of processes for nothing.
 */
import { join, resolve } from "node:path";
import { orNull } from "../../runtime/error-code.js";
import type { Files } from "./files.js";
import { JournalFolder } from "./journal.js";

/** @param root of a working tree, as git names it. Where only git can tell the answer is yes. */
export async function mayBeLeft(files: Files, root: string): Promise<boolean> {
  if ((await files.stat(root)) === null) return false;
  const gitDir = await gitDirOf(files, root);
  if (gitDir === null) return true;
  const home = join(gitDir, "jobtable");
  return (
    (await JournalFolder.all(files, home)).length > 0 || (await JournalFolder.hasTrash(files, home))
  );
}

/** `.git` is the folder, or a file that names it: see gitrepository-layout(5). */
async function gitDirOf(files: Files, root: string): Promise<string | null> {
  const at = join(root, ".git");
  const found = await files.stat(at);
  if (found?.isDirectory() === true) return at;
  if (found?.isFile() !== true) return null;
  const text = await orNull(files.read(at), "EACCES");
  const named = /^gitdir: (.+)$/s.exec(text ?? "")?.[1];
  return named === undefined ? null : resolve(root, named.replace(/\n$/, ""));
}
