/**
 * The lock of a workspace: one holder at a time over all processes that see its git folder. It is a row
 * of numbered folders, of which only the highest counts:
 *
 *     <git folder>/jobtable/lock/7/owner.json      held, by whom
 *     <git folder>/jobtable/lock/7/released.json   free
 *
 * Who wants it makes the next number, when the highest is free or its owner is gone for certain; age
 * tells nothing. A folder comes whole under its number, by a rename, which fails when the number is
 * taken: so exactly one takes over. The highest is never removed, so one who was slow, and made a number
 * that was used and removed meanwhile, sees a higher one and steps back. Releasing needs no room.
 */
import { join } from "node:path";
import { JobtableError } from "../../job/errors.js";
import type { ProcessIdentity, Processes } from "../../runtime/process-identity.js";
import { newToken } from "../../runtime/random.js";
import { isIdentity } from "../workspace/identity.js";
import { codeOf, orNull, type Files } from "./files.js";

export interface LockHolder {
  readonly owner: ProcessIdentity;
  /** What it is held for: the id of an apply, or `recovery`. */
  readonly purpose: string;
}

export type LockAttempt =
  | { readonly kind: "taken"; readonly lock: Lock }
  | { readonly kind: "busy"; readonly holder: LockHolder };

export interface Lock {
  /** Idempotent. */
  release(): Promise<void>;
}

/** Each lost attempt means that someone else made progress. */
const MAX_ATTEMPTS = 50;

/** @param home `<git folder>/jobtable`. */
export async function takeLock(
  files: Files,
  home: string,
  want: LockHolder,
  isGone: Processes["isGone"],
): Promise<LockAttempt> {
  const dir = join(home, "lock");
  await orNull(files.makeFolder(home, 0o700), "EEXIST");
  await orNull(files.makeFolder(dir, 0o700), "EEXIST");
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const top = await highest(files, dir);
    const holder = top === 0 ? null : await holderOf(files, join(dir, String(top)));
    if (holder === "changing") continue;
    if (holder !== null && !isGone(holder.owner)) return { kind: "busy", holder };
    const lock = await takeNumber(files, dir, top + 1, want);
    if (lock !== null) return { kind: "taken", lock };
  }
  throw new JobtableError(
    "apply_failed",
    `the lock in ${JSON.stringify(dir)} is taken all the time`,
  );
}

async function takeNumber(
  files: Files,
  dir: string,
  number: number,
  want: LockHolder,
): Promise<Lock | null> {
  const fresh = join(dir, `new-${newToken()}`);
  const mine = join(dir, String(number));
  try {
    await files.makeFolder(fresh, 0o700);
    await files.write(join(fresh, "owner.json"), JSON.stringify(want));
    await files.move(fresh, mine);
  } catch (error) {
    await files.removeTree(fresh);
    // Taken, or swept by one who took it.
    if (["EEXIST", "ENOTEMPTY", "ENOENT"].includes(codeOf(error))) return null;
    throw error;
  }
  if ((await highest(files, dir)) > number) {
    await files.removeTree(mine);
    return null;
  }
  await sweep(files, dir, number);
  return lockAt(files, mine);
}

function lockAt(files: Files, mine: string): Lock {
  let released: Promise<void> | null = null;
  const release = async (): Promise<void> => {
    // Not there any more: someone removed it by hand.
    await orNull(files.move(join(mine, "owner.json"), join(mine, "released.json")), "ENOENT");
  };
  return { release: () => (released ??= release()) };
}

/** What is below, and what killed processes left; one who is still writing his begins again. */
async function sweep(files: Files, dir: string, number: number): Promise<void> {
  for (const name of await files.list(dir))
    if (name.startsWith("new-") || Number(name) < number) await files.removeTree(join(dir, name));
}

async function highest(files: Files, dir: string): Promise<number> {
  const numbers = (await files.list(dir)).map(Number).filter(Number.isSafeInteger);
  return Math.max(0, ...numbers);
}

/** Null: it is free. `changing`: it was removed while being looked at. */
async function holderOf(files: Files, at: string): Promise<LockHolder | "changing" | null> {
  const names = await orNull(files.list(at), "ENOENT");
  if (names === null) return "changing";
  if (names.includes("released.json")) return null;
  const text = await files.read(join(at, "owner.json"));
  if (text === null) return "changing";
  let holder: unknown;
  try {
    holder = JSON.parse(text);
  } catch {
    holder = null;
  }
  if (isHolder(holder)) return holder;
  throw new JobtableError(
    "apply_failed",
    `the lock ${JSON.stringify(at)} can't be read: remove the folder when no plan is being applied`,
  );
}

function isHolder(value: unknown): value is LockHolder {
  if (typeof value !== "object" || value === null) return false;
  if (!("purpose" in value) || typeof value.purpose !== "string") return false;
  return "owner" in value && isIdentity(value.owner);
}
