/**
 * Removes the sandboxes that dead processes left behind: of those that nobody here can see, such as one of
 * a container that was started again with its files, once their job has ended. Safe when several
 * processes do it at once.
 */
import { lstat, readdir, readFile, realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { HolderEnds } from "../apply/lock.js";
import { orNull } from "../../runtime/error-code.js";
import { isIdentity } from "./identity.js";
import {
  folderIn,
  RECORD_COPY,
  removeSandbox,
  sandboxPlace,
  type SandboxRecord,
} from "./sandbox-place.js";

export interface Cleaned {
  readonly id: string;
  /** Root of the working tree that it was made for. */
  readonly workspace: string;
  /** Why it is still there, such as files of another user in it; null: it is removed. */
  readonly fault: unknown;
}

/**
 * @param root the folder for sandboxes; not there is fine.
 * @param ends how to know that the owner has ended.
 */
export async function cleanSandboxes(options: {
  readonly root: string;
  readonly ends: HolderEnds;
}): Promise<Cleaned[]> {
  const root = await realpath(options.root).catch(() => null);
  if (root === null) return [];
  const cleaned: Cleaned[] = [];
  for (const name of await readdir(root)) {
    if (!name.endsWith(".json")) continue;
    const id = basename(name, ".json");
    const record = await readRecord(join(root, name));
    if (record === null || !(await isOver(record, options.ends))) continue;
    const fault = await removeSandbox(sandboxPlace(root, id, record.commonDir)).then(
      () => null,
      (error: unknown) => error,
    );
    cleaned.push({ id, workspace: record.workspace, fault });
  }
  return cleaned;
}

/**
 * After a power cut all of a root in memory is gone, and git's folder for what was in it is not. Those of
 * dead processes whose sandbox is not there any more are removed.
 */
export async function forgetLost(commonDir: string, ends: HolderEnds): Promise<void> {
  const worktrees = join(commonDir, "worktrees");
  for (const id of await readdir(worktrees).catch(() => [])) {
    const gitDir = join(worktrees, id);
    const record = await readRecord(join(gitDir, RECORD_COPY));
    if (record === null || !(await isOver(record, ends))) continue;
    const gitdir = await readFile(join(gitDir, "gitdir"), "utf8").catch(() => "");
    const dir = folderIn(gitdir, gitDir);
    if (dir === null || basename(dir) !== id) continue;
    const isLost = (await orNull(lstat(dir), "ENOENT", "ENOTDIR")) === null;
    if (isLost) await removeSandbox(sandboxPlace(dirname(dir), id, commonDir));
  }
}

async function isOver({ owner, jobId }: SandboxRecord, ends: HolderEnds): Promise<boolean> {
  if (ends.isGone(owner)) return true;
  return jobId !== undefined && (await ends.isOver?.({ owner, purpose: jobId })) === true;
}

/** Null: it went meanwhile, or nobody knows what it is, and then it is left alone. */
async function readRecord(file: string): Promise<SandboxRecord | null> {
  try {
    const record: unknown = JSON.parse(await readFile(file, "utf8"));
    return isRecord(record) ? record : null;
  } catch {
    return null;
  }
}

function isRecord(value: unknown): value is SandboxRecord {
  if (typeof value !== "object" || value === null) return false;
  if (!("version" in value) || value.version !== 1) return false;
  if (!("workspace" in value) || typeof value.workspace !== "string") return false;
  if (!("commonDir" in value) || typeof value.commonDir !== "string") return false;
  if ("jobId" in value && typeof value.jobId !== "string") return false;
  return "owner" in value && isIdentity(value.owner);
}
