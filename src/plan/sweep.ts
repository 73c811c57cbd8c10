/**
 * What dead processes left behind, dealt with when a worker starts: applies that were cut short, in the
 * workspaces of all plans that the store knows and this machine has, and sandboxes. Every phase does
 * the same for its own workspace first, so that none depends on this.
 */
import { MAX_PAGE } from "../job/limits.js";
import type { Environment } from "./git/environment.js";
import { recoverAndNote, type RecoveredPorts } from "./recovered.js";
import type { Processes } from "../runtime/process-identity.js";
import { cleanSandboxes } from "./workspace/clean-sandboxes.js";
import { defaultSandboxRoot } from "./workspace/sandbox-root.js";
import { openWorkspace } from "./workspace/workspace.js";

export interface SweepPorts extends RecoveredPorts {
  readonly env: Environment;
  readonly processes: Processes;
  readonly sandboxRoot?: string | undefined;
}

/** Never rejects: what can't be mended now is told, and tried again by the next who comes. */
export async function sweepPlans(ports: SweepPorts, signal: AbortSignal): Promise<void> {
  const { ledger, env, clock, logger, processes, sandboxRoot = defaultSandboxRoot() } = ports;
  const { self: owner, isGone } = processes;
  try {
    const plans = await ledger.plans.list(MAX_PAGE);
    for (const path of new Set(plans.map(({ workspace }) => workspace))) {
      if (signal.aborted) return;
      try {
        const workspace = await openWorkspace(path, { env, clock });
        await recoverAndNote(ports, workspace, { owner, isGone });
      } catch (error) {
        // Most of them are on other machines, or gone.
        logger.debug({ workspace: path, err: error }, "could not look after a workspace");
      }
    }
    for (const removed of await cleanSandboxes({ root: sandboxRoot, isGone }))
      logger.info({ ...removed }, "removed the sandbox of a process that is gone");
  } catch (error) {
    logger.warn({ err: error }, "could not look after what plans left behind");
  }
}
