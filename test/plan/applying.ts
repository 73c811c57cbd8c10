/** Workspaces that patches are made from and applied to. */
import { spawnSync } from "node:child_process";
import type { Applied } from "../../src/plan/apply/apply.js";
import type { Files } from "../../src/plan/apply/files.js";
import type { FileSummary } from "../../src/plan/workspace/file-summary.js";
import { openWorkspace, type Workspace } from "../../src/plan/workspace/workspace.js";
import { systemProcesses, type ProcessIdentity } from "../../src/runtime/process-identity.js";
import type { Scratch } from "./scratch.js";

export const { self: owner, isGone } = systemProcesses();

/** Of a process that has ended. */
export function deadOwner(): ProcessIdentity {
  return { ...owner, pid: spawnSync("true").pid, pidStamp: "" };
}

export function workspaceAt(scratch: Scratch, root: string, files?: Files): Promise<Workspace> {
  return openWorkspace(root, { ...scratch.host, ...(files === undefined ? {} : { files }) });
}

export interface Made {
  readonly patch: Uint8Array;
  readonly files: readonly FileSummary[];
  /** What `look` saw in the sandbox at the end. */
  readonly seen: Record<string, string>;
}

/** What `edit` does in a sandbox, as a patch. */
export async function patchOf(
  scratch: Scratch,
  root: string,
  edit: (dir: string) => void,
  look: (dir: string) => Record<string, string> = () => ({}),
  base: "head" | "working-tree" = "working-tree",
): Promise<Made> {
  const workspace = await workspaceAt(scratch, root);
  const sandbox = await workspace.openSandbox({
    base,
    name: "s",
    root: scratch.path("sandboxes"),
    owner,
  });
  edit(sandbox.dir);
  const seen = look(sandbox.dir);
  const { patch, files } = await sandbox.collect();
  await sandbox.remove();
  return { patch, files, seen };
}

/** @throws when it does not fit. */
export async function applied(
  workspace: Workspace,
  patch: Uint8Array,
  id = "a1",
): Promise<Applied> {
  const result = await workspace.apply(patch, { id, owner, isGone });
  if (result.kind !== "applied") throw new Error(JSON.stringify(result));
  return result.applied;
}
