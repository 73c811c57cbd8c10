/**
 * Reads the workspace while nobody applies. The reader takes no lock, so it holds nobody up: the number of
 * the lock tells afterwards whether somebody had it meanwhile, and then it reads again.
 */
import { JobtableError } from "../../job/errors.js";
import { WorkspaceBusy } from "./busy.js";
import { JournalFolder } from "./journal.js";
import { lookAtLock } from "./lock.js";
import { recover, type RecoverOptions } from "./recover.js";
import type { StageContext } from "./stage.js";

/** Each lost one means that another apply began. */
const MAX_ATTEMPTS = 5;

/**
 * What dead processes left half-done is dealt with before.
 * @param read may be called again; what it threw while somebody applied counts no more than what it read.
 * @throws WorkspaceBusy when somebody applies; what `read` throws.
 */
export async function undisturbed<T>(
  context: Pick<StageContext, "files" | "repository">,
  home: string,
  options: RecoverOptions,
  read: () => Promise<T>,
): Promise<T> {
  const { files } = context;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    await recover(context, home, options);
    const { number, busy } = await lookAtLock(files, home, options);
    if (busy !== null) throw new WorkspaceBusy(busy);
    if (await JournalFolder.anyBegun(files, home)) continue;
    const found = await read().then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
    if ((await lookAtLock(files, home, options)).number !== number) continue;
    if ("value" in found) return found.value;
    throw found.error;
  }
  throw new JobtableError(
    "sandbox_failed",
    "the workspace can't be copied: plans are applied to it all the time; try again later",
  );
}
