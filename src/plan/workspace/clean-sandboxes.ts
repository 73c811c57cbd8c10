/** Removes the sandboxes that dead processes left behind. Safe when several processes do it at once. */
import { readdir, readFile, realpath } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Processes } from "../../runtime/process-identity.js";
import { isIdentity } from "./identity.js";
import { removeSandbox, sandboxPlace, type SandboxRecord } from "./sandbox-place.js";

export interface Cleaned {
  readonly id: string;
  /** Root of the working tree that it was made for. */
  readonly workspace: string;
  /** Why it is still there, such as files of another user in it; null: it is removed. */
  readonly fault: unknown;
}

/**
 * @param root the folder for sandboxes; not there is fine.
 * @param isGone certain that the owner has ended; false for one of another host.
 */
export async function cleanSandboxes(options: {
  readonly root: string;
  readonly isGone: Processes["isGone"];
}): Promise<Cleaned[]> {
  const root = await realpath(options.root).catch(() => null);
  if (root === null) return [];
  const cleaned: Cleaned[] = [];
  for (const name of await readdir(root)) {
    if (!name.endsWith(".json")) continue;
    const id = basename(name, ".json");
    const record = await readRecord(join(root, name));
    if (record === null || !options.isGone(record.owner)) continue;
    const fault = await removeSandbox(sandboxPlace(root, id, record.commonDir)).then(
      () => null,
      (error: unknown) => error,
    );
    cleaned.push({ id, workspace: record.workspace, fault });
  }
  return cleaned;
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
  return "owner" in value && isIdentity(value.owner);
}
