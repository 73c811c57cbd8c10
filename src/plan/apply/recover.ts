/**
 * Finishes what dead processes began: an apply that was committed is cleaned up, any other one is put
 * back. Who holds the workspace's lock is the only one to apply or to recover, so every journal that it
 * finds was left by one who is gone, or who failed to put things back or to tell of it himself. Every
 * step may be killed, and the next one begins again: what was done is noted before its journal goes.
 */
import type { ProcessIdentity } from "../../runtime/process-identity.js";
import { explained } from "../workspace/explained.js";
import { WorkspaceBusy } from "./busy.js";
import type { Edited } from "./edited.js";
import { JournalFolder } from "./journal.js";
import { takeLock, type HolderEnds } from "./lock.js";
import { restore } from "./restore.js";
import type { StageContext } from "./stage.js";

export interface Recovery {
  /** Of the apply. */
  readonly id: string;
  /** `committed`: all of the patch is there; `rolled_back`: nothing of it, but for what was edited. */
  readonly outcome: "committed" | "rolled_back";
  /** Left alone, since someone edited them after the apply began. */
  readonly edited: readonly Edited[];
}

/**
 * Where it is written down what became of an apply; until that has resolved, its journal stays.
 * @param sinceMs when one began that was committed, ms since the Unix epoch; null for any other one.
 * @returns whether the journal may go; false: it is for somebody else to write that down.
 */
export type NoteRecovery = (recovery: Recovery, sinceMs: number | null) => Promise<boolean>;

export interface RecoverOptions extends HolderEnds {
  readonly owner: ProcessIdentity;
  /** The job of who recovers; left out: it has none. */
  readonly jobId?: string | undefined;
  readonly note?: NoteRecovery | undefined;
}

type RecoverContext = Pick<StageContext, "files" | "repository">;

/**
 * @returns what was done, by id of the apply.
 * @throws WorkspaceBusy when there may be something to do, and another process is at it, or applies.
 */
export async function recover(
  context: RecoverContext,
  home: string,
  options: RecoverOptions,
): Promise<Recovery[]> {
  return explained("apply_failed", "the workspace can't be put back", () =>
    recoverAlone(context, home, options),
  );
}

async function recoverAlone(
  context: RecoverContext,
  home: string,
  { owner, jobId, note, ...ends }: RecoverOptions,
): Promise<Recovery[]> {
  const { files } = context;
  const isClean = (await JournalFolder.all(files, home)).length === 0;
  if (isClean && !(await JournalFolder.hasTrash(files, home))) return [];
  const attempt = await takeLock(files, home, { owner, purpose: jobId ?? "recovery" }, ends);
  if (attempt.kind === "busy") {
    if (isClean) return [];
    throw new WorkspaceBusy(attempt);
  }
  const { lock } = attempt;
  try {
    const recoveries = await recoverAll({ ...context, files: lock.files }, home, note);
    await JournalFolder.emptyTrash(lock.files, home);
    return recoveries;
  } finally {
    await lock.release();
  }
}

/** For the holder of the lock. */
export async function recoverAll(
  context: RecoverContext,
  home: string,
  note?: NoteRecovery,
): Promise<Recovery[]> {
  const done: Recovery[] = [];
  for (const folder of await JournalFolder.all(context.files, home)) {
    const { sinceMs = null, ...ending } = await recoverOne(context, folder);
    const recovery = { id: folder.id, ...ending };
    if ((await note?.(recovery, sinceMs)) === false) continue;
    done.push(recovery);
    await folder.discard();
  }
  return done;
}

async function recoverOne(
  { files, repository }: RecoverContext,
  folder: JournalFolder,
): Promise<Omit<Recovery, "id"> & { readonly sinceMs?: number }> {
  const state = await folder.state();
  switch (state.kind) {
    case "committed":
      return { outcome: "committed", edited: [], sinceMs: state.sinceMs };
    case "not-begun":
      return { outcome: "rolled_back", edited: [] };
    case "restored":
      return { outcome: "rolled_back", edited: state.edited };
    case "begun": {
      const edited = await restore(files, repository.root, folder, state.journal, "leave");
      await folder.finishRestoring(edited);
      return { outcome: "rolled_back", edited };
    }
    default:
      return state satisfies never;
  }
}
