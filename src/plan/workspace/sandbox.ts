/**
 * A sandbox: a detached working tree of the user's repository, in a folder of our own, in which steps
 * may do as they like with files. What they left is collected as a patch. The user's files, index,
 * stash, branches and HEAD stay as they are; a step that runs git there does share the repository with
 * the user, and what it does to branches or the stash is done.
 *
 * Whatever fails on the way, nothing of a sandbox that could not be made is left. What a killed process
 * leaves is found by `cleanSandboxes`.
 */
import { access, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { JobtableError } from "../../job/errors.js";
import type { ProcessIdentity } from "../../runtime/process-identity.js";
import { newToken } from "../../runtime/random.js";
import type { RecoverOptions } from "../apply/recover.js";
import type { Git } from "../git/git.js";
import type { Repository } from "../git/repository.js";
import { copyIndex, makeBase, type BaseKind } from "./base.js";
import { forgetLost } from "./clean-sandboxes.js";
import { collect } from "./collect.js";
import { explained } from "./explained.js";
import { refuseLeavingLinks, shown, takeInventory, type Inventory } from "./inventory.js";
import type { Outcome } from "./outcome.js";
import { defaultSandboxRoot, prepareSandboxRoot } from "./sandbox-root.js";
import {
  removeSandbox,
  sandboxPlace,
  writeCopy,
  writeRecord,
  type SandboxPlace,
} from "./sandbox-place.js";

export interface SandboxOptions {
  /** The last commit, or the files as they lie in the workspace. */
  readonly base: BaseKind;
  /** For people who look into the folder: 1 to 64 letters, digits, `_` and `-`. */
  readonly name: string;
  /** Absolute path of the folder that holds the sandboxes; `defaultSandboxRoot()` unless given. */
  readonly root?: string | undefined;
  /** Who may use it: when that process is gone, or its job has ended, it is removed. */
  readonly owner: ProcessIdentity;
  readonly signal?: AbortSignal | undefined;
  /** So that no files are copied that somebody is about to change; left out: nobody applies. */
  readonly recover?: RecoverOptions | undefined;
}

/** Calls it while nobody applies; maybe more than once. */
export type Undisturbed = <T>(read: () => Promise<T>) => Promise<T>;

export interface Sandbox {
  /** Unique; names its folder. */
  readonly id: string;
  /** Root of the working tree; absolute, without links. */
  readonly dir: string;
  /** A folder of ours that goes with it. */
  readonly scratch: string;
  readonly baseCommit: string;
  /** What differs from the workspace, one line each, for people. */
  readonly notes: readonly string[];
  /**
   * What steps changed so far; may be called again. Nothing may run in the sandbox meanwhile.
   * @throws JobtableError `outcome_refused`: something that no patch can carry; `sandbox_failed`,
   *   `git_failed`; the signal's reason.
   */
  collect(options?: { readonly signal?: AbortSignal | undefined }): Promise<Outcome>;
  /** Idempotent. */
  remove(): Promise<void>;
}

const NAME = /^[A-Za-z0-9_-]{1,64}$/;

/** Of what a plan's sandbox may be called. */
export function sandboxName(plan: string): string {
  return plan.replaceAll(".", "_").slice(0, 64);
}

/** @throws JobtableError `invalid_workspace`, `sandbox_failed`, `git_failed`; the signal's reason. */
export async function openSandbox(
  git: Git,
  repository: Repository,
  options: SandboxOptions,
  undisturbed: Undisturbed,
): Promise<Sandbox> {
  if (!NAME.test(options.name))
    throw new RangeError(`no name for a sandbox: ${JSON.stringify(options.name)}`);
  return explained("sandbox_failed", "the sandbox can't be made", () =>
    makeSandbox(git, repository, options, undisturbed),
  );
}

async function makeSandbox(
  git: Git,
  repository: Repository,
  options: SandboxOptions,
  undisturbed: Undisturbed,
): Promise<Sandbox> {
  const { name, owner, signal } = options;
  const root = await prepareSandboxRoot(options.root ?? defaultSandboxRoot(), repository);
  const { commonDir } = repository;
  if (options.recover !== undefined) await forgetLost(commonDir, options.recover);
  const place = sandboxPlace(root, `${name}-${newToken()}`, commonDir);
  try {
    const jobId = options.recover?.jobId;
    const record = { version: 1, owner, jobId, workspace: repository.root, commonDir } as const;
    await writeRecord(place, record);
    await mkdir(place.meta, { mode: 0o700 });
    const indexFile = join(place.meta, "base-index");
    const base = await undisturbed(async () => {
      await rm(indexFile, { force: true });
      return makeBase(git, repository, options.base, indexFile, signal);
    });
    const inventory = await inventoryOf(git, repository, base.commit, signal);
    await addWorkTree(git, repository, place, base.commit, signal);
    await writeCopy(place, record);
    return sandboxAt(git, repository, place, {
      commit: base.commit,
      inventory,
      notes: [...base.notes, ...submoduleNotes(inventory)],
    });
  } catch (error) {
    await removeSandbox(place);
    throw error;
  }
}

async function inventoryOf(
  git: Git,
  { root, gitDir }: Repository,
  commit: string,
  signal: AbortSignal | undefined,
): Promise<Inventory> {
  const inventory = await takeInventory(
    git,
    { cwd: root, env: { GIT_DIR: gitDir, GIT_WORK_TREE: root }, signal },
    commit,
  );
  await refuseLeavingLinks(inventory.links, "invalid_workspace");
  return inventory;
}

/** Work trees that come and go at the same time may take their folder from under each other. */
const ADD_ATTEMPTS = 3;

async function addWorkTree(
  git: Git,
  { root, gitDir }: Repository,
  place: SandboxPlace,
  commit: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const args = ["worktree", "add", "--detach", place.dir, commit];
  const call = { args, cwd: root, env: { GIT_DIR: gitDir, GIT_WORK_TREE: root }, signal };
  for (let attempt = 1; ; attempt += 1) {
    const { code, stderr } = await git.ask(call);
    if (code === 0) break;
    const raced = stderr.includes("could not create directory");
    if (raced && attempt < ADD_ATTEMPTS) continue;
    throw notMade(lastLine(stderr));
  }
  if (!(await isThere(place.gitDir))) throw notMade(`git did not make ${place.gitDir}`);
  await copyIndex(join(place.gitDir, "index"), join(place.meta, "index"));
}

function notMade(why: string): JobtableError {
  return new JobtableError("sandbox_failed", `the sandbox can't be made: ${why}`);
}

/** Before it git tells its progress. */
function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

function submoduleNotes(inventory: Inventory): string[] {
  return [...inventory.submodules.keys()].map(
    (path) => `the submodule ${shown(path)} is empty here`,
  );
}

function sandboxAt(
  git: Git,
  { commonDir }: Repository,
  place: SandboxPlace,
  base: { commit: string; inventory: Inventory; notes: readonly string[] },
): Sandbox {
  const { id, dir, gitDir, meta } = place;
  return {
    id,
    dir,
    scratch: meta,
    baseCommit: base.commit,
    notes: base.notes,
    collect: ({ signal } = {}) => {
      const made = { dir, gitDir, meta, commonDir, commit: base.commit, ...base.inventory };
      return explained("sandbox_failed", "the sandbox can't be read", () =>
        collect(git, made, signal),
      );
    },
    remove: () =>
      explained("sandbox_failed", "the sandbox can't be removed", () => removeSandbox(place)),
  };
}
