/** Thrown where somebody else applies, or recovers, and what is asked for can't be done meanwhile. */
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
