/**
 * How a phase knows that whoever holds a workspace's lock is over. Of a process in another container, or on
 * another machine, the store knows: a holder whose job has ended has released the lock, is gone, or was
 * taken for lost. A job that this store does not know may be another store's, and live.
 */
import { isTerminal } from "../job/state.js";
import type { Ledger } from "../ledger/ledger.js";
import type { Processes } from "../runtime/process-identity.js";
import { jobOf } from "./apply/busy.js";
import type { HolderEnds } from "./apply/lock.js";

export function holderEnds(
  ledger: Pick<Ledger, "plans" | "get">,
  { isGone, wasRestarted, isRunning }: Processes,
): HolderEnds {
  return {
    // Locks and sandboxes are files of this machine, and so are those who made them.
    isGone: (owner) => isGone(owner) || wasRestarted(owner),
    async isOver(holder) {
      const jobId = jobOf(holder);
      if (jobId === null || isRunning(holder.owner)) return false;
      const [job = null] = await ledger.get([jobId]);
      if (job !== null) return isTerminal(job.status);
      // Forgotten, which only those are that have ended; the run is kept for longer.
      return (await ledger.plans.run(jobId)) !== null;
    },
  };
}
