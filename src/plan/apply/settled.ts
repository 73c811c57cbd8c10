/** Whether the workspace is as its user has it, for whoever only looks at it. */
import { JobtableError } from "../../job/errors.js";
import { holderText } from "./busy.js";
import type { Files } from "./files.js";
import { JournalFolder } from "./journal.js";
import { lookAtLock, type HolderEnds } from "./lock.js";

/**
 * Changes nothing.
 * @param home `<git folder>/jobtable`.
 * @throws JobtableError `apply_failed` while somebody applies, or when an apply was cut short.
 */
export async function requireSettled(files: Files, home: string, ends: HolderEnds): Promise<void> {
  const { busy } = await lookAtLock(files, home, ends);
  if (busy !== null)
    throw unsettled(`another process has the workspace, wait for it: ${holderText(busy)}`);
  if (await JournalFolder.anyBegun(files, home))
    throw unsettled(
      "an apply to the workspace was cut short: the next execute or apply there takes it back",
    );
}

function unsettled(why: string): JobtableError {
  return new JobtableError("apply_failed", why);
}
