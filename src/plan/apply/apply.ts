/**
 * Puts a patch on the workspace, all of it or nothing. Until the journal is written the workspace is
 * not touched; from then on, whatever happens to this process, it is put back, unless the apply was
 * committed. The lock is held from the first look until commit or roll-back: steps run in between.
 */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mkdtemp } from "node:fs/promises";
import { JobtableError } from "../../job/errors.js";
import type { ProcessIdentity } from "../../runtime/process-identity.js";
import { removeTree } from "../workspace/remove-tree.js";
import type { FileConflict } from "./conflicts.js";
import { explained } from "../workspace/explained.js";
import type { Edited } from "./edited.js";
import { JournalFolder, type Journal } from "./journal.js";
import { takeLock, type BusyLock, type HolderEnds, type Lock } from "./lock.js";
import { putInPlace } from "./put.js";
import { recoverAll, type NoteRecovery, type Recovery } from "./recover.js";
import { restore } from "./restore.js";
import { stage, type StageContext } from "./stage.js";

export interface ApplyOptions extends HolderEnds {
  /** Of the apply, unique: 1 to 64 letters, digits, `_` and `-`. */
  readonly id: string;
  readonly owner: ProcessIdentity;
  readonly signal?: AbortSignal | undefined;
  /** Of applies that dead processes left behind. */
  readonly note?: NoteRecovery | undefined;
}

export type Fit =
  | { readonly kind: "fits" }
  | { readonly kind: "conflicts"; readonly conflicts: readonly FileConflict[] };

/** Of applies that dead processes left behind: they are dealt with before anything is looked at. */
interface AfterRecovery {
  readonly recovered: readonly Recovery[];
}

export type ApplyResult =
  | ({ readonly kind: "applied"; readonly applied: Applied } & AfterRecovery)
  | ({ readonly kind: "conflicts"; readonly conflicts: readonly FileConflict[] } & AfterRecovery)
  | ({ readonly kind: "busy" } & BusyLock);

export interface Applied {
  /** A folder of ours that goes with the journal. */
  readonly scratch: string;
  /**
   * It is to stay. When this is done it does, whatever happens. Idempotent.
   * @param note writes down that it does; when that rejects, or is cut short, the journal stays, and the
   *   next one to recover notes it.
   */
  commit(note?: () => Promise<void>): Promise<void>;
  /**
   * Puts everything back as it was; what was edited since is kept apart. Idempotent.
   * @returns the files that were edited since.
   * @throws JobtableError `apply_failed` when something can't be put back: `recover` tries again.
   */
  rollBack(): Promise<readonly Edited[]>;
}

const ID = /^[A-Za-z0-9_-]{1,64}$/;

/** Whether a patch would fit now. Changes nothing and takes no lock. */
export async function checkApply(
  context: StageContext,
  patch: Uint8Array,
  signal: AbortSignal | undefined,
): Promise<Fit> {
  return explained("apply_failed", "the patch can't be tried", async () => {
    const work = await mkdtemp(join(tmpdir(), "jobtable-check-"));
    try {
      const staging = await stage(context, patch, work, signal);
      return staging.kind === "fits" ? { kind: "fits" } : staging;
    } finally {
      await removeTree(work);
    }
  });
}

/** @param home `<git folder>/jobtable`. */
export async function apply(
  { git, repository, files }: StageContext,
  home: string,
  patch: Uint8Array,
  { id, owner, signal, note, ...ends }: ApplyOptions,
): Promise<ApplyResult> {
  if (!ID.test(id)) throw new RangeError(`no id for an apply: ${JSON.stringify(id)}`);
  signal?.throwIfAborted();
  return explained("apply_failed", "the patch can't be applied", async () => {
    const attempt = await takeLock(files, home, { owner, purpose: id }, ends);
    if (attempt.kind === "busy") return attempt;
    const { lock } = attempt;
    const context = { git, repository, files: lock.files };
    try {
      const recovered = await recoverAll(context, home, note);
      const folder = new JournalFolder(context.files, home, id);
      const done = await applyIn(context, folder, patch, signal);
      if (done.kind === "applied")
        return {
          kind: "applied",
          applied: appliedAt(context, folder, done.journal, lock),
          recovered,
        };
      await lock.release();
      return { ...done, recovered };
    } catch (error) {
      await lock.release();
      throw error;
    }
  });
}

type Done =
  | { readonly kind: "applied"; readonly journal: Journal }
  | { readonly kind: "conflicts"; readonly conflicts: readonly FileConflict[] };

async function applyIn(
  context: StageContext,
  folder: JournalFolder,
  patch: Uint8Array,
  signal: AbortSignal | undefined,
): Promise<Done> {
  const { files, repository } = context;
  await folder.make();
  let journal: Journal | null = null;
  try {
    const staging = await stage(context, patch, folder.dir, signal);
    if (staging.kind === "conflicts") {
      await folder.discard();
      return staging;
    }
    journal = await folder.begin(staging.staged);
    const changed = await putInPlace(files, repository.root, folder, journal, signal);
    if (changed === null) return { kind: "applied", journal };
    await putBack(context, folder, journal);
    const reason = "was changed while the patch was being put in place";
    return { kind: "conflicts", conflicts: [{ file: changed, line: null, reason }] };
  } catch (error) {
    // What can't be discarded now is by the next one.
    if (journal === null) await folder.discard().catch(() => undefined);
    else await putBackAfter(error, context, folder, journal);
    throw error;
  }
}

/** Right after a failure: whoever edited a file since has done so a moment ago, and it stays. */
async function putBack(
  { files, repository }: StageContext,
  folder: JournalFolder,
  journal: Journal,
): Promise<void> {
  const edited = await restore(files, repository.root, folder, journal, "leave");
  await folder.finishRestoring(edited);
  await folder.discard();
}

async function putBackAfter(
  error: unknown,
  context: StageContext,
  folder: JournalFolder,
  journal: Journal,
): Promise<void> {
  try {
    await putBack(context, folder, journal);
  } catch (again) {
    throw new JobtableError(
      "apply_failed",
      `the patch can't be put in place (${String(error)}), nor can all of the workspace be put back ` +
        `as it was (${String(again)}): mend that, and the next use of the workspace does it`,
      { cause: again },
    );
  }
}

function appliedAt(
  { files, repository }: StageContext,
  folder: JournalFolder,
  journal: Journal,
  lock: Lock,
): Applied {
  let committed: Promise<void> | null = null;
  let rolledBack: Promise<readonly Edited[]> | null = null;
  const commit = async (note: () => Promise<void>): Promise<void> => {
    try {
      await folder.commit().catch((error: unknown) => notCommitted(error, folder, takeBack));
      // What stays is dealt with by the next one.
      await note()
        .then(() => folder.discard())
        .catch(() => undefined);
    } finally {
      await lock.release();
    }
  };
  const takeBack = async (): Promise<readonly Edited[]> => {
    const edited = await restore(files, repository.root, folder, journal, "replace");
    await folder.finishRestoring(edited);
    await folder.discard().catch(() => undefined);
    return edited;
  };
  const rollBack = async (): Promise<readonly Edited[]> => {
    try {
      return await takeBack();
    } finally {
      await lock.release();
    }
  };
  return {
    scratch: folder.dir,
    commit(note = () => Promise.resolve()) {
      if (rolledBack !== null) throw new Error("the apply was rolled back");
      return (committed ??= explained("apply_failed", "the patch can't be committed", () =>
        commit(note),
      ));
    },
    rollBack() {
      if (committed !== null) throw new Error("the apply was committed");
      return (rolledBack ??= explained(
        "apply_failed",
        "the workspace can't be put back",
        rollBack,
      ));
    },
  };
}

/** Whoever is told that it failed must not find it done: it is taken back, where that can still be. */
async function notCommitted(
  error: unknown,
  folder: JournalFolder,
  takeBack: () => Promise<readonly Edited[]>,
): Promise<never> {
  const failed = (what: string, cause = error): JobtableError =>
    new JobtableError("apply_failed", `the patch can't be committed (${String(error)}), ${what}`, {
      cause,
    });
  const { kind } = await folder.state();
  if (kind === "not-begun") throw error;
  if (kind !== "begun") throw failed("but is in place: the next use of the workspace records it");
  const edited = await takeBack().catch((again: unknown) => {
    const why = `nor taken back (${String(again)})`;
    throw failed(`${why}: mend that, and the next use of the workspace does it`, again);
  });
  const kept = edited.map(({ path, other }) => `; your version of ${path} is ${other ?? path}`);
  throw failed(`and was taken back${kept.join("")}`);
}
