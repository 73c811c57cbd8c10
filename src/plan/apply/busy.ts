/** Thrown where somebody else applies, or recovers, and what is asked for can't be done meanwhile. */
import { formatJobId, parseJobId } from "../../job/id.js";
import type { BusyLock, LockHolder } from "./lock.js";

export class WorkspaceBusy extends Error {
  readonly holder: LockHolder;
  /** Of the lock. */
  readonly folder: string;

  constructor({ holder, folder }: BusyLock) {
    super(`the workspace is held for ${holder.purpose}: ${JSON.stringify(folder)}`);
    this.name = "WorkspaceBusy";
    this.holder = holder;
    this.folder = folder;
  }
}

/** The job that a lock is held for; null: none. */
export function jobOf({ purpose }: LockHolder): string | null {
  return parseJobId(formatJobId(purpose));
}

/** Who it is, and what to do when he is no more. */
export function holderText({ holder, folder }: BusyLock): string {
  const { pid, host } = holder.owner;
  const jobId = jobOf(holder);
  const [name = ""] = host.split("/");
  return (
    `${jobId === null ? "a recovery" : formatJobId(jobId)}, in process ${String(pid)} of ${name}; ` +
    `if that process is no more, remove ${JSON.stringify(folder)}`
  );
}
