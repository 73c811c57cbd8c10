/**
 * What of a commit needs care before its files are made or compared: its symbolic links, with where
 * they lead, and its submodules. Names are bytes here, one character each (latin1), since a commit may
 * hold names that are no text.
 */
import { JobtableError } from "../../job/errors.js";
import type { Git } from "../git/git.js";
import { leavesRoot } from "./links.js";

export interface Inventory {
  /** Target by path. */
  readonly links: ReadonlyMap<string, string>;
  /** The commit of each submodule by path. */
  readonly submodules: ReadonlyMap<string, string>;
}

export interface InventoryCall {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal | undefined;
}

/** All targets together. */
const MAX_TARGET_BYTES = 64 * 1024 * 1024;

export async function takeInventory(
  git: Git,
  call: InventoryCall,
  commit: string,
): Promise<Inventory> {
  const links = new Map<string, string>();
  const submodules = new Map<string, string>();
  await git.records({ ...call, args: ["ls-tree", "-r", "-z", commit] }, (record) => {
    const tab = record.indexOf(0x09);
    const [mode, , id] = record.toString("latin1", 0, tab).split(" ");
    const path = record.toString("latin1", tab + 1);
    if (mode === "120000") links.set(path, id ?? "");
    if (mode === "160000") submodules.set(path, id ?? "");
  });
  return { links: await readTargets(git, call, links), submodules };
}

async function readTargets(
  git: Git,
  call: InventoryCall,
  ids: ReadonlyMap<string, string>,
): Promise<Map<string, string>> {
  if (ids.size === 0) return new Map();
  const blobs = await git.run({
    ...call,
    args: ["cat-file", "--batch"],
    input: Buffer.from([...ids.values()].join("\n") + "\n"),
    maxBytes: MAX_TARGET_BYTES,
  });
  const targets = new Map<string, string>();
  let at = 0;
  for (const path of ids.keys()) {
    // "<id> blob <size>\n<content>\n"
    const headerEnd = blobs.indexOf(0x0a, at);
    const size = Number(blobs.toString("latin1", at, headerEnd).split(" ")[2]);
    targets.set(path, blobs.toString("latin1", headerEnd + 1, headerEnd + 1 + size));
    at = headerEnd + 1 + size + 1;
  }
  return targets;
}

/** @throws JobtableError that names the first link that leads out of the root, and its target. */
export async function refuseLeavingLinks(
  links: ReadonlyMap<string, string>,
  code: "invalid_workspace" | "outcome_refused",
): Promise<void> {
  for (const [path, target] of links)
    if (await leavesRoot(path, target, (at) => links.get(at) ?? null))
      throw new JobtableError(
        code,
        `the symbolic link ${shown(path)} leads out of the workspace, to ${shown(target)}: ` +
          "a step could write there; remove the link, or have git ignore it",
      );
}

/** For people: as text where it is text. */
export function shown(bytes: string): string {
  return JSON.stringify(Buffer.from(bytes, "latin1").toString("utf8"));
}
