/**
 * What stands at a path of the workspace, as far as applying cares. A path is looked at from the root,
 * folder by folder, so that no link on the way is ever followed: behind one there is nothing.
 */
import { join } from "node:path";
import type { FileFacts, Files } from "./files.js";

export type Image = Nothing | FolderImage | FileImage | LinkImage;

interface Nothing {
  readonly kind: "nothing";
}
interface FolderImage {
  readonly kind: "folder";
  readonly mode: number;
}
export interface FileImage extends FileFacts {
  readonly kind: "file";
}
interface LinkImage {
  readonly kind: "link";
  readonly target: string;
}

/** Devices, FIFOs, sockets, and links whose target is no text: they are never touched. */
interface Special {
  readonly kind: "special";
}

/** How far the folders above a path are there. */
export interface Way {
  /** Whether all are. */
  readonly hasParent: boolean;
  /** The first thing on the way that is no folder; null: there is none. A missing folder is none. */
  readonly blockedBy: string | null;
}

export interface Look extends Way {
  readonly image: Image | Special;
}

export const NOTHING: Nothing = { kind: "nothing" };

/** @param path relative to the root, with `/` between. */
export async function lookAt(files: Files, root: string, path: string): Promise<Look> {
  const way = await wayTo(files, root, path);
  return { ...way, image: way.hasParent ? await imageAt(files, join(root, path)) : NOTHING };
}

export async function wayTo(files: Files, root: string, path: string): Promise<Way> {
  for (const above of foldersAbove(path)) {
    const found = await files.stat(join(root, above));
    if (found === null) return { hasParent: false, blockedBy: null };
    if (!found.isDirectory()) return { hasParent: false, blockedBy: above };
  }
  return { hasParent: true, blockedBy: null };
}

async function imageAt(files: Files, at: string): Promise<Image | Special> {
  const found = await files.stat(at);
  if (found === null) return NOTHING;
  if (found.isFile()) return { kind: "file", ...(await files.facts(at)) };
  if (found.isDirectory()) return { kind: "folder", mode: found.mode & 0o7777 };
  if (!found.isSymbolicLink()) return { kind: "special" };
  const bytes = await files.readLink(at);
  const target = bytes.toString("utf8");
  return Buffer.from(target).equals(bytes) ? { kind: "link", target } : { kind: "special" };
}

/** Content and mode; of folders only that they are. Times don't count. */
export function isSame(a: Image | Special, b: Image | Special): boolean {
  if (a.kind === "file" && b.kind === "file")
    return a.mode === b.mode && a.bytes === b.bytes && a.hash === b.hash;
  if (a.kind === "link" && b.kind === "link") return a.target === b.target;
  return a.kind === b.kind && a.kind !== "special";
}

/** A file or a link: what a patch brings and takes away; folders come and go with these. */
export function isLeaf(image: Image | Special): image is FileImage | LinkImage {
  return image.kind === "file" || image.kind === "link";
}

/** `a/b/c` -> `a`, `a/b`. */
export function foldersAbove(path: string): string[] {
  const names = path.split("/").slice(0, -1);
  return names.map((_, index) => names.slice(0, index + 1).join("/"));
}
