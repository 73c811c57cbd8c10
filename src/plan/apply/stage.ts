/**
 * Works out what a patch makes of the workspace, without touching it. The files that it names are
 * copied as they lie there into a folder of ours (`before/`), git applies the patch to a small work
 * tree of these (`stage/`), with the repository's settings and attributes, and what comes out is kept
 * (`after/`). Line endings and filters are git's business on both ways.
 */
import { join } from "node:path";
import { JobtableError } from "../../job/errors.js";
import type { Git } from "../git/git.js";
import { inWorkTree, type Repository, type WorkTree } from "../git/repository.js";
import { leavesRoot } from "../workspace/links.js";
import { conflictsIn, MAX_CONFLICTS, type FileConflict } from "./conflicts.js";
import { orNull } from "../../runtime/error-code.js";
import type { Files } from "./files.js";
import { folderChanges, type FolderChanges } from "./folder-changes.js";
import { foldersAbove, isSame, lookAt, type Image } from "./image.js";
import { patchPaths } from "./patch-paths.js";

/** One path and what becomes of it. Its number names its images: `before/3`, `after/3`. */
export interface Entry {
  readonly number: number;
  readonly path: string;
  readonly before: Image;
  readonly after: Image;
}

export interface Staged extends FolderChanges {
  /** By path; those that change, all told. */
  readonly entries: readonly Entry[];
}

export type Staging =
  | { readonly kind: "fits"; readonly staged: Staged }
  | { readonly kind: "conflicts"; readonly conflicts: readonly FileConflict[] };

export interface StageContext {
  readonly git: Git;
  readonly repository: Repository;
  readonly files: Files;
}

/**
 * @param work an empty folder of ours, which keeps the images.
 * @throws JobtableError `apply_failed`: no patch, or git fails for reasons that are none of the patch's.
 */
export async function stage(
  context: StageContext,
  patch: Uint8Array,
  work: string,
  signal: AbortSignal | undefined,
): Promise<Staging> {
  const { git, repository, files } = context;
  const dir = join(work, "stage");
  const folders = [dir, join(work, "before"), join(work, "after")];
  for (const folder of folders) await files.makeFolder(folder, 0o700);
  const indexFile = join(work, "no-index");
  const tree = { dir, gitDir: repository.gitDir, indexFile, objects: null };
  if (patch.length === 0)
    return { kind: "fits", staged: { entries: [], madeFolders: [], removedFolders: [] } };
  const paths = await patchPaths(git, tree, patch, signal);
  const { images, conflicts } = await takeBefore(context, work, paths, signal);
  const known = new Set(paths);
  await copyAttributes(context, dir, known);
  const found = [...conflicts, ...(await applyThere(git, tree, patch, known, signal))];
  if (found.length > 0) return conflicting(found);
  const entries = await takeAfter(files, work, images);
  await refuseLinks(context, entries);
  const changes = await folderChanges(files, repository.root, entries);
  if (changes.conflicts.length > 0) return conflicting(changes.conflicts);
  return { kind: "fits", staged: { entries, ...changes.folders } };
}

/** The first word about each file. */
function conflicting(found: readonly FileConflict[]): Staging {
  const byFile = new Map<string, FileConflict>();
  for (const conflict of found) if (!byFile.has(conflict.file)) byFile.set(conflict.file, conflict);
  const conflicts = [...byFile.values()].sort((a, b) => (a.file < b.file ? -1 : 1));
  return { kind: "conflicts", conflicts: conflicts.slice(0, MAX_CONFLICTS) };
}

interface Before {
  readonly number: number;
  readonly path: string;
  readonly image: Image;
}

async function takeBefore(
  { files, repository }: StageContext,
  work: string,
  paths: readonly string[],
  signal: AbortSignal | undefined,
): Promise<{ images: Before[]; conflicts: FileConflict[] }> {
  const all = new Set(paths);
  const images: Before[] = [];
  const conflicts: FileConflict[] = [];
  for (const [number, path] of paths.entries()) {
    signal?.throwIfAborted();
    const { image, blockedBy } = await lookAt(files, repository.root, path);
    const conflict = (reason: string): unknown =>
      conflicts.push({ file: path, line: null, reason });
    // What the patch itself may take away is git's to judge.
    if (blockedBy !== null && !all.has(blockedBy))
      conflict(`lies below ${JSON.stringify(blockedBy)}, which is no folder here`);
    if (image.kind === "special") conflict("is neither file, folder nor link here");
    else {
      images.push({ number, path, image });
      await putOnStage(files, work, { number, path, image }, repository.root);
    }
  }
  return { images, conflicts };
}

async function putOnStage(
  files: Files,
  work: string,
  { number, path, image }: Before,
  root: string,
): Promise<void> {
  if (image.kind === "nothing") return;
  const at = join(work, "stage", path);
  await makeFoldersAbove(files, join(work, "stage"), path);
  switch (image.kind) {
    case "file": {
      const copy = join(work, "before", String(number));
      const facts = await files.copy(join(root, path), copy);
      if (facts.hash !== image.hash)
        throw new JobtableError(
          "apply_failed",
          `${JSON.stringify(path)} is being changed just now`,
        );
      // git replaces a file and never writes into one, so both names may be of one file.
      await files.addName(copy, at);
      return;
    }
    case "link":
      return files.makeLink(at, image.target);
    case "folder":
      await orNull(files.makeFolder(at), "EEXIST");
      return;
    default:
      image satisfies never;
  }
}

async function makeFoldersAbove(files: Files, root: string, path: string): Promise<void> {
  for (const above of foldersAbove(path))
    await orNull(files.makeFolder(join(root, above)), "EEXIST");
}

/** They say how the files below them are read and written, and may lie in any folder above these. */
async function copyAttributes(
  { files, repository: { root } }: StageContext,
  dir: string,
  paths: ReadonlySet<string>,
): Promise<void> {
  const folders = new Set(
    [...paths].flatMap((path) => ["", ...foldersAbove(path).map((at) => `${at}/`)]),
  );
  for (const folder of folders) {
    const path = `${folder}.gitattributes`;
    if (paths.has(path)) continue;
    const { image } = await lookAt(files, root, path);
    if (image.kind !== "file") continue;
    await makeFoldersAbove(files, dir, path);
    await files.copy(join(root, path), join(dir, path));
  }
}

async function applyThere(
  git: Git,
  tree: WorkTree,
  patch: Uint8Array,
  paths: ReadonlySet<string>,
  signal: AbortSignal | undefined,
): Promise<FileConflict[]> {
  const args = ["apply", "--whitespace=nowarn", "-"];
  const { code, stderr } = await git.ask({ ...inWorkTree(tree), args, input: patch, signal });
  if (code === 0) return [];
  const conflicts = conflictsIn(stderr, paths);
  if (conflicts.length > 0) return conflicts;
  const why = stderr.trim().split("\n", 1)[0] ?? "";
  throw new JobtableError("apply_failed", `the patch can't be applied: ${why}`);
}

async function takeAfter(files: Files, work: string, befores: readonly Before[]): Promise<Entry[]> {
  const entries: Entry[] = [];
  const dir = join(work, "stage");
  for (const { number, path, image: before } of befores) {
    const { image: made } = await lookAt(files, dir, path);
    if (made.kind === "special") throw new Error(`git made something odd of ${path}`);
    const after = made.kind === "file" ? { ...made, mode: modeAfter(before, made.mode) } : made;
    if (isSame(before, after)) continue;
    if (after.kind === "file") {
      const kept = join(work, "after", String(number));
      await files.move(join(dir, path), kept);
      await files.setMode(kept, after.mode);
    }
    entries.push({ number, path, before, after });
  }
  return entries;
}

/** git knows of a mode only whether a file can be executed; the rest is the user's. */
function modeAfter(before: Image, made: number): number {
  if (before.kind !== "file") return made;
  const isProgram = (made & 0o100) !== 0;
  if (isProgram === ((before.mode & 0o100) !== 0)) return before.mode;
  // Who may read it may execute it.
  return isProgram ? before.mode | ((before.mode & 0o444) >> 2) : before.mode & ~0o111;
}

async function refuseLinks(
  { files, repository: { root } }: StageContext,
  entries: readonly Entry[],
): Promise<void> {
  const after = new Map(entries.map((entry) => [entry.path, entry.after]));
  const targetOf = async (path: string): Promise<string | null> => {
    const image = after.get(path) ?? (await lookAt(files, root, path)).image;
    return image.kind === "link" ? image.target : null;
  };
  for (const { path, after: image } of entries)
    if (image.kind === "link" && (await leavesRoot(path, image.target, targetOf)))
      throw new JobtableError(
        "apply_failed",
        `the patch can't be used: its symbolic link ${JSON.stringify(path)} leads out of the workspace, to ${JSON.stringify(image.target)}`,
      );
}
