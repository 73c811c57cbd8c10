/** A workspace: the working tree of the user's repository, which plans copy from and are applied to. */
import { Git, type GitHost } from "../git/git.js";
import { openRepository } from "../git/repository.js";
import { openSandbox, type Sandbox, type SandboxOptions } from "./sandbox.js";

export interface Workspace {
  /** Of the working tree; absolute, without links. */
  readonly root: string;
  /** @throws JobtableError `invalid_workspace`, `git_failed`; the signal's reason. */
  openSandbox(options: SandboxOptions): Promise<Sandbox>;
}

/**
 * @param path absolute; anywhere in a working tree.
 * @throws JobtableError `invalid_workspace`, in one line: not there, no repository, bare, no commit, ...
 */
export async function openWorkspace(path: string, host: GitHost): Promise<Workspace> {
  const git = new Git(host);
  const repository = await openRepository(git, path);
  return {
    root: repository.root,
    openSandbox: (options) => openSandbox(git, repository, options),
  };
}
