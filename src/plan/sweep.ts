/**
 * What dead processes left behind, dealt with when a worker starts: applies that were cut short, in the
 * workspaces of all plans that the store knows and this machine has, and sandboxes. Every phase does
 * the same for its own workspace first, so that none depends on this.
 */
import { MAX_PAGE } from "../job/limits.js";
import type { Environment } from "./git/environment.js";
import { WorkspaceBusy } from "./apply/busy.js";
import { systemFiles } from "./apply/files.js";
import { mayBeLeft } from "./apply/left-behind.js";
import { holderEnds } from "./holder-ends.js";
import { messageOf } from "./phase-failed.js";
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
  const { ledger, env, clock, logger, processes } = ports;
  const owner = processes.self;
  const ends = holderEnds(ledger, processes);
  try {
    const plans = await ledger.plans.list(MAX_PAGE);
    for (const path of new Set(plans.map(({ workspace }) => workspace))) {
      if (signal.aborted) return;
      try {
        if (!(await mayBeLeft(systemFiles, path))) continue;
        const workspace = await openWorkspace(path, { env, clock });
        await recoverAndNote(ports, workspace, { owner, ...ends });
      } catch (error) {
        if (error instanceof WorkspaceBusy) {
          logger.warn({ workspace: path }, messageOf(error));
          continue;
        }
        // Most of them are on other machines, or gone.
        logger.debug({ workspace: path, err: error }, "could not look after a workspace");
      }
    }
    await sweepSandboxes(ports);
  } catch (error) {
    logger.warn({ err: error }, "could not look after what plans left behind");
  }
}

/** Those of dead processes. Never rejects. */
export async function sweepSandboxes({
  ledger,
  logger,
  processes,
  sandboxRoot = defaultSandboxRoot(),
}: Pick<SweepPorts, "ledger" | "logger" | "processes" | "sandboxRoot">): Promise<void> {
  try {
    const ends = holderEnds(ledger, processes);
    for (const { fault, ...sandbox } of await cleanSandboxes({ root: sandboxRoot, ends }))
      if (fault === null) logger.info(sandbox, "removed the sandbox of a process that is gone");
      else logger.warn({ ...sandbox, err: fault }, "the sandbox of a process that is gone stays");
  } catch (error) {
    logger.warn({ err: error }, "could not look for the sandboxes of processes that are gone");
  }
}
