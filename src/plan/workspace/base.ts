/**
 * The commit that a sandbox starts from: the last one, or one that is made of the files as they lie in
 * the workspace, ignored ones apart. The latter is made through an index of its own, so that the
 * user's index, stash, refs and files stay as they are; the commit belongs to no branch, and git
 * forgets it some time after the sandbox is gone.
 *
 * `.jobtable/` at the root is never part of it, nor are repositories within the workspace.
 */
import { copyFile, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { JobtableError } from "../../job/errors.js";
import { codeOf } from "../../runtime/error-code.js";
import type { Git } from "../git/git.js";
import { inWorkTree, type Repository, type WorkTree } from "../git/repository.js";
import { shown } from "./inventory.js";
import { findChanges, joined, record, sortByStanding } from "./record-files.js";

export type BaseKind = "head" | "working-tree";

export interface Base {
  readonly commit: string;
  /** What is left out, for people. */
  readonly notes: readonly string[];
}

/** Of uncommitted files, which go into the repository as they are. */
const MAX_UNCOMMITTED_BYTES = 2 * 1024 ** 3;

/** The folder at the root where stores and logs of Jobtable's own lie. */
export const OWN_FOLDER = ".jobtable";

export function isOwn(path: Buffer): boolean {
  const text = path.toString("latin1");
  return text === OWN_FOLDER || text.startsWith(`${OWN_FOLDER}/`);
}

/** @param indexFile where an index may be made; nothing stands there yet. */
export async function makeBase(
  git: Git,
  repository: Repository,
  kind: BaseKind,
  indexFile: string,
  signal: AbortSignal | undefined,
): Promise<Base> {
  const tree = { dir: repository.root, gitDir: repository.gitDir, indexFile, objects: null };
  const at = { ...inWorkTree(tree), signal };
  const head = await git.text({ ...at, args: ["rev-parse", "--verify", "HEAD^{commit}"] });
  const notes = kind === "working-tree" ? await takeFiles(git, tree, signal) : [];
  if (kind === "head") {
    const own = await git.run({ ...at, args: ["ls-tree", "-z", head, OWN_FOLDER] });
    if (own.length === 0) return { commit: head, notes };
    await git.run({ ...at, args: ["read-tree", head] });
  }
  await dropOwn(git, tree, signal);
  const made = await git.text({ ...at, args: ["write-tree"] });
  const last = await git.text({ ...at, args: ["rev-parse", "--verify", `${head}^{tree}`] });
  if (made === last) return { commit: head, notes };
  const args = ["commit-tree", "-p", head, "-m", "Files of the workspace", made];
  return { commit: await git.text({ ...at, args }), notes };
}

async function takeFiles(
  git: Git,
  tree: WorkTree,
  signal: AbortSignal | undefined,
): Promise<string[]> {
  await copyIndex(join(tree.gitDir, "index"), tree.indexFile);
  await lookAtAll(git, tree, signal);
  const changes = await findChanges(git, tree, signal);
  const paths = [...changes.known, ...changes.added].filter((path) => !isOwn(path));
  const sorted = await sortByStanding(tree.dir, paths);
  const [special] = sorted.special;
  if (special !== undefined) throw refused(`${shownPath(special)} is neither file nor link`);
  if (sorted.bytes > MAX_UNCOMMITTED_BYTES)
    throw refused(
      `the uncommitted files have ${String(sorted.bytes)} bytes, more than ${String(MAX_UNCOMMITTED_BYTES)}: ` +
        "have git ignore what a plan does not need, or commit it",
    );
  const passedOver = await record(git, tree, sorted, signal);
  if (passedOver !== null) throw refused(`git never takes a file of such a name: ${passedOver}`);
  return changes.repositories
    .filter((path) => !isOwn(path))
    .map((path) => `the repository ${shownPath(path)} within the workspace is not here`);
}

/**
 * A user may have told git not to look at some files (assume-unchanged, skip-worktree); what lies there
 * counts all the same. One to skip that is not there was left out by a sparse checkout, and stays as committed.
 */
async function lookAtAll(git: Git, tree: WorkTree, signal: AbortSignal | undefined): Promise<void> {
  const at = { ...inWorkTree(tree), signal };
  const assumed: Buffer[] = [];
  const skipped: Buffer[] = [];
  // "<letter> <path>": small for assume-unchanged, an S for skip-worktree.
  await git.records({ ...at, args: ["ls-files", "-z", "-v"] }, (record) => {
    const letter = record.toString("latin1", 0, 1);
    const path = Buffer.from(record.subarray(2));
    if (letter !== letter.toUpperCase()) assumed.push(path);
    if (letter.toUpperCase() === "S") skipped.push(path);
  });
  const { files: present } = await sortByStanding(tree.dir, skipped);
  for (const [flag, paths] of [
    ["--no-assume-unchanged", assumed],
    ["--no-skip-worktree", present],
  ] as const) {
    const args = ["update-index", "-z", flag, "--stdin"];
    if (paths.length > 0) await git.run({ ...at, args, input: joined(paths) });
  }
}

async function dropOwn(git: Git, tree: WorkTree, signal: AbortSignal | undefined): Promise<void> {
  const at = { ...inWorkTree(tree), signal };
  const gone: Buffer[] = [];
  const args = ["ls-files", "-z", "--cached", "--", OWN_FOLDER];
  await git.records({ ...at, args }, (path) => gone.push(Buffer.from(path)));
  await record(git, tree, { files: [], gone }, signal);
}

/**
 * Copies an index so that git still trusts its times no more than it should: entries as young as the
 * index itself are compared by content ("racy git", see racy-git in git's documentation).
 */
export async function copyIndex(from: string, to: string): Promise<void> {
  let mtimeMs: number;
  try {
    ({ mtimeMs } = await stat(from));
    await copyFile(from, to);
  } catch (error) {
    // A repository may have none; then no file is known.
    if (codeOf(error) === "ENOENT") return;
    throw error;
  }
  const seconds = Math.floor(mtimeMs) / 1_000;
  await utimes(to, seconds, seconds);
}

function shownPath(path: Buffer): string {
  return shown(path.toString("latin1"));
}

function refused(why: string): JobtableError {
  return new JobtableError("invalid_workspace", `the workspace can't be copied: ${why}`);
}
