/**
 * Finds what steps left in a sandbox. The files are compared with the index as it was when the sandbox
 * was made, in a copy of ours, so that whatever steps did with git there (commits, staging, flags that
 * hide changes) neither adds nor hides anything; objects go to a folder of ours too, and with the
 * sandbox. Files that git ignores count when a step added them to the index or to a commit by force.
 */
import { lstat, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Git } from "../git/git.js";
import { inWorkTree, type WorkTree } from "../git/repository.js";
import { copyIndex, isOwn } from "./base.js";
import { refuseLeavingLinks, shown, takeInventory, type Inventory } from "./inventory.js";
import { compare, outcomeRefused, textOf, type Outcome } from "./outcome.js";
import { findChanges, record, sortByStanding } from "./record-files.js";
import { refuseChangedSubmodules } from "./submodules.js";

/** A sandbox as it was made. */
export interface Made extends Inventory {
  readonly dir: string;
  readonly gitDir: string;
  /** Holds the index as it was, as `index`. */
  readonly meta: string;
  readonly commonDir: string;
  readonly commit: string;
}

/** Of all new and changed files: they are read to make a patch that must be far smaller. */
const MAX_CHANGED_BYTES = 1024 ** 3;

/** @throws JobtableError `outcome_refused`, `git_failed`; the signal's reason. */
export async function collect(
  git: Git,
  made: Made,
  signal: AbortSignal | undefined,
): Promise<Outcome> {
  const { dir, gitDir, meta, commonDir, commit, submodules } = made;
  await refuseBlockingFiles(dir, signal);
  await refuseChangedSubmodules(git, dir, submodules, signal);
  const indexFile = join(meta, "collect-index");
  const objects = { dir: join(meta, "objects"), repository: join(commonDir, "objects") };
  await Promise.all([
    rm(indexFile, { force: true }),
    rm(`${indexFile}.lock`, { force: true }),
    mkdir(objects.dir, { recursive: true, mode: 0o700 }),
  ]);
  await copyIndex(join(meta, "index"), indexFile);
  const tree = { dir, gitDir, indexFile, objects };
  await recordAll(git, tree, made, signal);
  const written = await git.text({ ...inWorkTree(tree), signal, args: ["write-tree"] });
  const outcome = await compare(git, tree, commit, written, signal);
  if (outcome.files.length > 0) await refuseLinks(git, tree, written, signal);
  return outcome;
}

async function recordAll(
  git: Git,
  tree: WorkTree,
  made: Made,
  signal: AbortSignal | undefined,
): Promise<void> {
  const changes = await findChanges(git, tree, signal);
  const counts = (path: Buffer): boolean =>
    !isOwn(path) && !made.submodules.has(path.toString("latin1"));
  const [repository] = changes.repositories.filter(counts);
  if (repository !== undefined) throw embedded(repository);
  const known = changes.known.filter(counts);
  const forced = (await addedByForce(git, tree, made, signal)).filter(counts);
  const sorted = await sortByStanding(tree.dir, [...known, ...changes.added.filter(counts)]);
  const also = await sortByStanding(tree.dir, forced);
  const [special] = [...sorted.special, ...also.special];
  if (special !== undefined)
    throw outcomeRefused(`${JSON.stringify(textOf(special))} is neither file, folder nor link`);
  if (sorted.bytes + also.bytes > MAX_CHANGED_BYTES)
    throw outcomeRefused(
      `new and changed files have ${String(sorted.bytes + also.bytes)} bytes, more than ` +
        `${String(MAX_CHANGED_BYTES)}: have git ignore what is only built`,
    );
  const files = [...sorted.files, ...also.files];
  files.forEach(textOf);
  const passedOver = await record(git, tree, { files, gone: sorted.gone }, signal);
  if (passedOver !== null)
    throw outcomeRefused(`git never takes a file of such a name: ${passedOver}`);
}

/** What steps made known to git by itself, in the index of the sandbox or in commits. */
async function addedByForce(
  git: Git,
  tree: WorkTree,
  { gitDir, commit }: Made,
  signal: AbortSignal | undefined,
): Promise<Buffer[]> {
  const found: Buffer[] = [];
  const read = async (args: string[]): Promise<void> => {
    const theirs = { ...tree, indexFile: join(gitDir, "index") };
    const names = ["-z", "--name-only", "--no-renames", "--diff-filter=AT"];
    const [verb = "", ...rest] = args;
    await git.records({ ...inWorkTree(theirs), signal, args: [verb, ...names, ...rest] }, (path) =>
      found.push(Buffer.from(path)),
    );
  };
  await read(["diff-index", "--cached", commit]);
  // A step may have begun a history of its own, with no commit yet.
  const head = ["rev-parse", "--verify", "-q", "HEAD^{commit}"];
  const { code } = await git.ask({ ...inWorkTree(tree), signal, args: head });
  if (code === 0) await read(["diff-tree", "-r", commit, "HEAD"]);
  for (const path of found) if (await isRepository(tree.dir, path)) throw embedded(path);
  return found;
}

async function isRepository(dir: string, path: Buffer): Promise<boolean> {
  return lstat(Buffer.concat([Buffer.from(`${dir}/`), path, Buffer.from("/.git")])).then(
    () => true,
    () => false,
  );
}

function embedded(path: Buffer): Error {
  return outcomeRefused(
    `${shown(path.toString("latin1"))} is a repository of its own, which a patch can't carry: ` +
      "remove its .git, or have git ignore it",
  );
}

async function refuseLinks(
  git: Git,
  tree: WorkTree,
  written: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { links } = await takeInventory(git, { ...inWorkTree(tree), signal }, written);
  await refuseLeavingLinks(links, "outcome_refused");
}

/** Files that git reads as soon as it meets them; at a FIFO of that name it would wait for ever. */
const READ_BY_GIT = new Set([".gitignore", ".gitattributes", ".gitmodules"]);

async function refuseBlockingFiles(dir: string, signal: AbortSignal | undefined): Promise<void> {
  // Names are bytes, one character each.
  const left = [""];
  for (let at = left.pop(); at !== undefined; at = left.pop()) {
    signal?.throwIfAborted();
    const folder = Buffer.concat([Buffer.from(`${dir}/`), Buffer.from(at, "latin1")]);
    for (const entry of await readdir(folder, { withFileTypes: true, encoding: "latin1" })) {
      const path = at === "" ? entry.name : `${at}/${entry.name}`;
      if (entry.isDirectory() && entry.name !== ".git") left.push(path);
      if (!READ_BY_GIT.has(entry.name)) continue;
      if (!entry.isFile() && !entry.isDirectory() && !entry.isSymbolicLink())
        throw outcomeRefused(`${shown(path)} is neither file, folder nor link`);
    }
  }
}
