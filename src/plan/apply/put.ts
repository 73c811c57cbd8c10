/**
 * Puts the post-images in place. What needs room on the disk comes first, as new files beside their
 * targets; then files that go are removed, and each new one takes its place in one step. Right before a
 * path is changed it is compared with what the patch was fitted to.
 */
import type { Files } from "./files.js";
import { isLeaf, isSame, type Image } from "./image.js";
import type { Journal, JournalFolder } from "./journal.js";
import type { Entry } from "./stage.js";
import { Tree } from "./tree.js";

/**
 * Stops where it is on an error or the signal; the caller puts back what was done.
 * @returns the path that was changed by someone meanwhile, or null when all is in place and on disk.
 */
export async function putInPlace(
  files: Files,
  root: string,
  folder: JournalFolder,
  journal: Journal,
  signal: AbortSignal | undefined,
): Promise<string | null> {
  const tree = new Tree(files, root, journal);
  const { entries, madeFolders, removedFolders } = journal;
  const go = entries.filter(({ before, after }) => isLeaf(before) && !isLeaf(after));
  const come = entries.filter(({ after }) => isLeaf(after));
  for (const path of madeFolders) await tree.makeFolder(path);
  const late: Entry[] = [];
  for (const entry of come) {
    signal?.throwIfAborted();
    if (!(await prepare(tree, folder, entry))) late.push(entry);
  }
  for (const { path, before } of go) {
    signal?.throwIfAborted();
    if (!(await isStill(tree, path, before))) return path;
    await tree.remove(path);
  }
  const replaced = new Set(come.filter(({ before }) => before.kind === "folder").map(pathOf));
  for (const { path } of removedFolders)
    if (!(await tree.removeFolder(path)) && replaced.has(path)) return path;
  for (const path of madeFolders) if (!(await tree.makeFolder(path))) return path;
  for (const entry of late) if (!(await prepare(tree, folder, entry))) return entry.path;
  for (const entry of come) {
    signal?.throwIfAborted();
    const expected: Image = entry.before.kind === "folder" ? { kind: "nothing" } : entry.before;
    if (!(await isStill(tree, entry.path, expected))) return entry.path;
    await tree.take(entry);
  }
  await tree.sync(entries.map(pathOf));
  return null;
}

function prepare(tree: Tree, folder: JournalFolder, entry: Entry): Promise<boolean> {
  return tree.prepare(entry, entry.after, folder.after(entry.number), null);
}

/** The folder above counts: one that became a link is no place to write to. */
async function isStill(tree: Tree, path: string, expected: Image): Promise<boolean> {
  const { image, hasParent } = await tree.look(path);
  return hasParent && isSame(image, expected);
}

function pathOf({ path }: { readonly path: string }): string {
  return path;
}
