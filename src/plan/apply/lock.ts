/**
 * The lock of a workspace: one holder at a time over all processes that see its git folder. It is a row
 * of numbered folders, of which only the highest counts:
 *
 *     <git folder>/jobtable/lock/7/owner.json      held, by whom
 *     <git folder>/jobtable/lock/7/released.json   free
 *
 * Who wants it makes the next number, when the highest is free or its holder is over; age tells nothing.
 * A folder comes whole under its number, by a rename, which fails when the number is taken: so exactly
 * one takes over. The highest is never removed, so one who was slow, and made a number that was used and
 * removed meanwhile, sees a higher one and steps back. Releasing needs no room.
 *
 * A holder is over when its process is gone for certain. Of one in another container or on another
 * machine nobody here can tell; but it holds the lock for a job, and releases it before that ends. So once
 * that job has ended it is gone, has lost its job to its own silence, or has taken longer to put things
 * back than a cancelled job is waited for (`TAKE_BACK_MS`). The latter two may still go on, so
 * a holder looks whether the lock is still its own before each change (`fenced`). What it does between
 * that look and the change can't be held up, nor can the steps of its plan; one that is known to run is
 * never taken for over.
 */
import { join } from "node:path";
import { JobtableError } from "../../job/errors.js";
import type { ProcessIdentity, Processes } from "../../runtime/process-identity.js";
import { newToken } from "../../runtime/random.js";
import { isIdentity } from "../workspace/identity.js";
import { codeOf, orNull } from "../../runtime/error-code.js";
import { guarded, type Files } from "./files.js";

export interface LockHolder {
  readonly owner: ProcessIdentity;
  /** What it is held for: the id of a job, or `recovery` where there is none. */
  readonly purpose: string;
}

/** How to know that a holder is over. */
export interface HolderEnds {
  readonly isGone: Processes["isGone"];
  /** Of one that may not be gone: whether its job has ended. Left out: nobody knows. */
  readonly isOver?: ((holder: LockHolder) => Promise<boolean>) | undefined;
}

export interface BusyLock {
  readonly holder: LockHolder;
  /** May be removed by hand once the holder is no more. */
  readonly folder: string;
}

export type LockAttempt =
  { readonly kind: "taken"; readonly lock: Lock } | ({ readonly kind: "busy" } & BusyLock);

export interface Lock {
  /** Idempotent. */
  release(): Promise<void>;
  /** These files, which refuse to change once somebody else has taken the lock over. */
  readonly files: Files;
}

/** Each lost attempt means that someone else made progress. */
const MAX_ATTEMPTS = 50;

/** @param home `<git folder>/jobtable`. */
export async function takeLock(
  files: Files,
  home: string,
  want: LockHolder,
  ends: HolderEnds,
): Promise<LockAttempt> {
  const dir = lockFolder(home);
  await orNull(files.makeFolder(home, 0o700), "EEXIST");
  await orNull(files.makeFolder(dir, 0o700), "EEXIST");
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const { number, busy } = await lookAtLock(files, home, ends);
    if (busy !== null) return { kind: "busy", ...busy };
    const lock = await takeNumber(files, dir, number + 1, want);
    if (lock !== null) return { kind: "taken", lock };
  }
  throw takenAllTheTime(dir);
}

/** Changes nothing. `number` is another one whenever someone had the lock in between. */
export async function lookAtLock(
  files: Files,
  home: string,
  { isGone, isOver }: HolderEnds,
): Promise<{ readonly number: number; readonly busy: BusyLock | null }> {
  const dir = lockFolder(home);
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const number = await highest(files, dir);
    const folder = join(dir, String(number));
    const holder = number === 0 ? null : await holderOf(files, folder);
    if (holder === "changing") continue;
    if (holder === null || isGone(holder.owner)) return { number, busy: null };
    const isFree = (await isOver?.(holder)) === true;
    return { number, busy: isFree ? null : { holder, folder } };
  }
  throw takenAllTheTime(dir);
}

function lockFolder(home: string): string {
  return join(home, "lock");
}

function takenAllTheTime(dir: string): JobtableError {
  return new JobtableError(
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
  return lockAt(files, dir, number);
}

function lockAt(files: Files, dir: string, number: number): Lock {
  const mine = join(dir, String(number));
  let released: Promise<void> | null = null;
  const release = async (): Promise<void> => {
    // Not there any more: someone removed it by hand.
    await orNull(files.move(join(mine, "owner.json"), join(mine, "released.json")), "ENOENT");
  };
  const check = async (): Promise<void> => {
    if ((await highest(files, dir)) === number) return;
    throw new JobtableError(
      "apply_failed",
      "the workspace was taken over by another process: this one had been taken for lost",
    );
  };
  return { release: () => (released ??= release()), files: guarded(files, check) };
}

/** What is below, and what killed processes left; one who is still writing his begins again. */
async function sweep(files: Files, dir: string, number: number): Promise<void> {
  for (const name of await files.list(dir))
    if (name.startsWith("new-") || Number(name) < number) await files.removeTree(join(dir, name));
}

async function highest(files: Files, dir: string): Promise<number> {
  const names = (await orNull(files.list(dir), "ENOENT")) ?? [];
  const numbers = names.map(Number).filter(Number.isSafeInteger);
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
