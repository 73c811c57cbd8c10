/**
 * Where a sandbox lies, and how it goes. Everything about it is named after its id:
 *
 *     <root>/<id>.json    whose it is; written first and removed last
 *     <root>/<id>.meta/   indexes and objects of ours
 *     <root>/<id>/        the files that steps see
 *     <common git folder>/worktrees/<id>/   how git knows it, see gitrepository-layout(5); and once more
 *                                           whose it is, for when all of the root is lost
 *
 * So whoever finds the first can remove all of it, in whatever state a killed process left it. The last
 * is removed by name and not by `git worktree prune`, which would also forget work trees of the user
 * whose disk is not there at the moment.
 */
import { readFile, rename, rmdir, unlink, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import type { ProcessIdentity } from "../../runtime/process-identity.js";
import { codeOf } from "../../runtime/error-code.js";
import { removeTree } from "./remove-tree.js";

export interface SandboxPlace {
  readonly id: string;
  readonly dir: string;
  readonly meta: string;
  readonly ownerFile: string;
  readonly gitDir: string;
}

export interface SandboxRecord {
  readonly version: 1;
  readonly owner: ProcessIdentity;
  /** What it was made for; an older version wrote none. */
  readonly jobId?: string | undefined;
  /** Root of the working tree that it was made for. */
  readonly workspace: string;
  readonly commonDir: string;
}

/** @param root without links, as git would name it. */
export function sandboxPlace(root: string, id: string, commonDir: string): SandboxPlace {
  return {
    id,
    dir: join(root, id),
    meta: join(root, `${id}.meta`),
    ownerFile: join(root, `${id}.json`),
    gitDir: join(commonDir, "worktrees", id),
  };
}

/** Whole or not there: a reader never meets half of it. */
export async function writeRecord(place: SandboxPlace, record: SandboxRecord): Promise<void> {
  const fresh = freshFile(place);
  await writeFile(fresh, JSON.stringify(record), OWN);
  await rename(fresh, place.ownerFile);
}

/** In git's folder for it, which is there. */
export async function writeCopy(place: SandboxPlace, record: SandboxRecord): Promise<void> {
  await writeFile(join(place.gitDir, RECORD_COPY), JSON.stringify(record), OWN);
}

export const RECORD_COPY = "jobtable.json";
const OWN = { flag: "wx", mode: 0o600 } as const;

/** Idempotent; the repository may be gone. */
export async function removeSandbox(place: SandboxPlace): Promise<void> {
  await removeTree(place.dir);
  await removeTree(place.meta);
  if (await isRegistered(place)) {
    await removeTree(place.gitDir);
    // As git does when the last one goes.
    await unless(rmdir(dirname(place.gitDir)), "ENOTEMPTY", "EEXIST", "ENOENT", "ENOTDIR");
  }
  await unless(unlink(freshFile(place)), "ENOENT");
  await unless(unlink(place.ownerFile), "ENOENT");
}

function freshFile({ ownerFile }: SandboxPlace): string {
  return `${ownerFile}.new`;
}

/** Whether git's folder of this name is of this sandbox; one that git had not filled yet is. */
async function isRegistered(place: SandboxPlace): Promise<boolean> {
  const file = join(place.gitDir, "gitdir");
  const known = await readFile(file, "utf8").catch(() => "");
  if (known.trim() === "") return true;
  return folderIn(known, place.gitDir) === place.dir;
}

/** The working tree that a `gitdir` file names; null: none. A relative path counts from its folder. */
export function folderIn(gitdir: string, folder: string): string | null {
  const named = resolve(folder, gitdir.replace(/\n$/, ""));
  return basename(named) === ".git" ? dirname(named) : null;
}

async function unless(work: Promise<void>, ...fine: readonly string[]): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!fine.includes(codeOf(error))) throw error;
  }
}
