/**
 * Which folders come and go with the files of a patch: those above new files are made, those that
 * files or links take the place of are removed, and those that are left empty, as git does it. Whatever
 * a folder holds that the patch does not know keeps it where it is, or is a conflict.
 */
import { join } from "node:path";
import type { FileConflict } from "./conflicts.js";
import type { Files } from "./files.js";
import { foldersAbove, isLeaf, lookAt, type Image } from "./image.js";

export interface FolderChanges {
  /** Each before those in it. */
  readonly madeFolders: readonly string[];
  /** Each after those in it. */
  readonly removedFolders: readonly RemovedFolder[];
}

export interface RemovedFolder {
  readonly path: string;
  readonly mode: number;
}

interface Change {
  readonly path: string;
  readonly before: Image;
  readonly after: Image;
}

export async function folderChanges(
  files: Files,
  root: string,
  changes: readonly Change[],
): Promise<{ folders: FolderChanges; conflicts: FileConflict[] }> {
  const planner = new FolderPlanner(files, root, changes);
  const conflicts: FileConflict[] = [];
  for (const { path, before, after } of changes) {
    if (before.kind !== "folder" || !isLeaf(after)) continue;
    const stranger = await planner.emptyOut(path, before.mode);
    if (stranger !== null)
      conflicts.push({
        file: path,
        line: null,
        reason: `is a folder here, with ${JSON.stringify(stranger)} in it`,
      });
  }
  await planner.removeEmptied();
  return { folders: await planner.folders(), conflicts };
}

class FolderPlanner {
  readonly #files: Files;
  readonly #root: string;
  /** Files and links that will be there. */
  readonly #come: ReadonlySet<string>;
  /** Files and links that will not be there any more. */
  readonly #go: ReadonlySet<string>;
  readonly #removed = new Map<string, number>();

  constructor(files: Files, root: string, changes: readonly Change[]) {
    const pathsOf = (test: (change: Change) => boolean): ReadonlySet<string> =>
      new Set(changes.filter(test).map(({ path }) => path));
    this.#files = files;
    this.#root = root;
    this.#come = pathsOf(({ after }) => isLeaf(after));
    this.#go = pathsOf(({ before, after }) => isLeaf(before) && !isLeaf(after));
  }

  /** Removes a folder with all in it that goes. @returns the first in it that does not, or null. */
  async emptyOut(folder: string, mode: number): Promise<string | null> {
    for (const name of (await this.#files.list(join(this.#root, folder))).sort()) {
      const path = `${folder}/${name}`;
      if (this.#go.has(path)) continue;
      const { image } = await lookAt(this.#files, this.#root, path);
      if (image.kind !== "folder") return path;
      const stranger = await this.emptyOut(path, image.mode);
      if (stranger !== null) return stranger;
    }
    this.#removed.set(folder, mode);
    return null;
  }

  async removeEmptied(): Promise<void> {
    const kept = new Set([...this.#come].flatMap(foldersAbove));
    const left = new Set([...this.#go].flatMap(foldersAbove));
    for (const folder of deepestFirst(left)) {
      if (kept.has(folder) || this.#removed.has(folder)) continue;
      const { image } = await lookAt(this.#files, this.#root, folder);
      if (image.kind !== "folder") continue;
      const names = await this.#files.list(join(this.#root, folder));
      const goes = (path: string): boolean => this.#go.has(path) || this.#removed.has(path);
      if (names.every((name) => goes(`${folder}/${name}`))) this.#removed.set(folder, image.mode);
    }
  }

  async folders(): Promise<FolderChanges> {
    const made: string[] = [];
    const needed = new Set([...this.#come].flatMap(foldersAbove));
    for (const folder of deepestFirst(needed).reverse()) {
      const { image } = await lookAt(this.#files, this.#root, folder);
      if (image.kind !== "folder") made.push(folder);
    }
    const removed = deepestFirst(this.#removed.keys());
    return {
      madeFolders: made,
      removedFolders: removed.map((path) => ({ path, mode: this.#removed.get(path) ?? 0o755 })),
    };
  }
}

function deepestFirst(paths: Iterable<string>): string[] {
  const depth = (path: string): number => path.split("/").length;
  return [...new Set(paths)].sort((a, b) => depth(b) - depth(a) || (a < b ? -1 : 1));
}
