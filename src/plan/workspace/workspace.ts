/** A workspace: the working tree of the user's repository, which plans copy from and are applied to. */
import { join } from "node:path";
import {
  apply,
  checkApply,
  type ApplyOptions,
  type ApplyResult,
  type Fit,
} from "../apply/apply.js";
import { systemFiles, type Files } from "../apply/files.js";
import type { HolderEnds } from "../apply/lock.js";
import { recover, type Recovery, type RecoverOptions } from "../apply/recover.js";
import { requireSettled } from "../apply/settled.js";
import { undisturbed } from "../apply/undisturbed.js";
import { Git, type GitHost } from "../git/git.js";
import { openRepository } from "../git/repository.js";
import { openSandbox, type Sandbox, type SandboxOptions } from "./sandbox.js";

export interface Workspace {
  /** Of the working tree; absolute, without links. */
  readonly root: string;

  /**
   * @throws JobtableError `invalid_workspace`, `sandbox_failed`, `git_failed`; the signal's reason;
   *   WorkspaceBusy where the files are to be copied and somebody applies to them.
   */
  openSandbox(options: SandboxOptions): Promise<Sandbox>;

  /**
   * Whether a patch would fit now. Changes nothing.
   * @throws JobtableError `apply_failed`: it is no patch, or names what no plan may touch.
   */
  checkApply(patch: Uint8Array, options?: { readonly signal?: AbortSignal }): Promise<Fit>;

  /**
   * Changes nothing.
   * @throws JobtableError `apply_failed` while somebody applies, or when an apply was cut short: the files
   *   are not the user's then.
   */
  requireSettled(ends: HolderEnds): Promise<void>;

  /**
   * Puts a patch in place, all of it or nothing. One that is applied is to be committed or rolled back;
   * until then no other one can be. One at a time for each working tree, over all processes.
   * @throws JobtableError `apply_failed`; the signal's reason. The workspace is as it was then, unless
   *   the one line says that it could not be put back.
   */
  apply(patch: Uint8Array, options: ApplyOptions): Promise<ApplyResult>;

  /**
   * Deals with applies whose processes are gone: to be called before the first apply, and at the start
   * of whatever asks for plans. Idempotent; safe when several processes do it at once.
   * @throws JobtableError `apply_failed` when something can't be put back: call it again; WorkspaceBusy
   *   when there may be something to do, and somebody else is at it, or applies.
   */
  recover(options: RecoverOptions): Promise<Recovery[]>;
}

export interface WorkspaceHost extends GitHost {
  /** What files are read and written with; tests pass their own. */
  readonly files?: Files;
}

/**
 * @param path absolute; anywhere in a working tree.
 * @throws JobtableError `invalid_workspace`, in one line: not there, no repository, bare, no commit, ...
 */
export async function openWorkspace(path: string, host: WorkspaceHost): Promise<Workspace> {
  const git = new Git(host);
  const repository = await openRepository(git, path);
  const context = { git, repository, files: host.files ?? systemFiles };
  const home = join(repository.gitDir, "jobtable");
  return {
    root: repository.root,
    openSandbox: (options) =>
      openSandbox(git, repository, options, (read) =>
        options.base === "head" || options.recover === undefined
          ? read()
          : undisturbed(context, home, options.recover, read),
      ),
    checkApply: (patch, { signal } = {}) => checkApply(context, patch, signal),
    requireSettled: (ends) => requireSettled(context.files, home, ends),
    apply: (patch, options) => apply(context, home, patch, options),
    recover: (options) => recover(context, home, options),
  };
}
