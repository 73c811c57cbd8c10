/**
 * Runs a phase of a plan as a job's handler: what the run's record asks for, wherever it was written.
 *
 * Execute: steps in a sandbox, whose changes become the run's patch. Apply: the patch of the last
 * execute on the workspace, then steps there, then the commit point; whatever fails before takes all of
 * it back. A run records its steps as they go, and its outcome before its job ends: an execute where it
 * is worth nothing without, an apply between its commit point and the end of its journal, so that whoever
 * comes after a killed process can still tell.
 *
 * A cancel, a time limit or a shutdown ends the step, and what was done is taken back. After the commit
 * point of an apply they come too late: what is on the workspace stays, and the run's outcome says so.
 */
import { STOP_REASONS } from "../engine/attempt.js";
import { parseJobId } from "../job/id.js";
import type { PlanInput } from "../job/payload.js";
import type { TerminalStatus } from "../job/state.js";
import type { Ledger } from "../ledger/ledger.js";
import type { PlanRunWithSteps } from "../ledger/plan-records.js";
import type { Clock } from "../runtime/clock.js";
import type { Logger } from "../runtime/logger.js";
import type { Processes } from "../runtime/process-identity.js";
import type { TaskContext } from "../task/task.js";
import { executedRun } from "./applicable.js";
import type { Applied } from "./apply/apply.js";
import { WorkspaceBusy } from "./apply/busy.js";
import type { RecoverOptions } from "./apply/recover.js";
import { stepsOf, type PlanDefinition } from "./definition.js";
import type { Environment } from "./git/environment.js";
import { holderEnds } from "./holder-ends.js";
import { editedNote, listed, type PhaseOutcome } from "./outcome.js";
import { pastRecovery } from "./past-recovery.js";
import {
  asThrown,
  editedMeanwhile,
  messageOf,
  patchConflict,
  PhaseFailed,
  planGone,
} from "./phase-failed.js";
import { recoverAndNote, recoveryNote } from "./recovered.js";
import { StepRecorder } from "./step-recorder.js";
import type { StepsListener, TaskPort } from "./steps/api.js";
import { runSteps } from "./steps/run-steps.js";
import { sweepSandboxes } from "./sweep.js";
import { sandboxName, type Sandbox } from "./workspace/sandbox.js";
import { openWorkspace, type Workspace } from "./workspace/workspace.js";

export interface PhasePorts {
  readonly ledger: Pick<Ledger, "plans" | "get">;
  /** What steps find in their environment, before the plan's own. */
  readonly env: Environment;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly processes: Processes;
  /** Runs tasks in the slot of the plan's job. */
  readonly tasks: TaskPort;
  /** How long a step may go on after it was told to stop, ms. */
  readonly graceMs: number;
  /** Where sandboxes are made; left out: in the system's folder for temporary files. */
  readonly sandboxRoot?: string | undefined;
  /** Sees the steps as they go. */
  readonly watcher?: StepsListener | undefined;
}

/** What the job's result says. */
export type PhaseResult = Pick<PhaseOutcome, "files" | "notes"> & { readonly plan: string };

/** What a phase gave: the rest of an outcome says how it ended. */
type Gain = Pick<PhaseOutcome, "files" | "baseCommit" | "executeJobId"> & {
  readonly patch?: Uint8Array;
};

export class PhaseRunner {
  readonly #ports: PhasePorts;

  constructor(ports: PhasePorts) {
    this.#ports = ports;
  }

  /** @throws PhaseFailed, or the signal's reason: whatever ended it. */
  async run({ planId }: PlanInput, ctx: TaskContext): Promise<PhaseResult> {
    const { plans } = this.#ports.ledger;
    const jobId = parseJobId(ctx.jobId ?? "");
    const run = jobId === null ? null : await plans.run(jobId);
    if (run === null) throw planGone(planId);
    const phase = new PhaseRun(this.#ports, run, ctx.signal);
    return phase.result();
  }
}

class PhaseRun {
  readonly #ports: PhasePorts;
  readonly #run: PlanRunWithSteps;
  readonly #plan: PlanDefinition;
  readonly #signal: AbortSignal;
  readonly #recorder: StepRecorder;
  readonly #startedAtMs: number;
  /** Of the outcome, whatever becomes of the phase. */
  readonly #notes: string[] = [];

  constructor(ports: PhasePorts, run: PlanRunWithSteps, signal: AbortSignal) {
    this.#ports = ports;
    this.#run = run;
    this.#plan = JSON.parse(run.definitionJson) as PlanDefinition;
    this.#signal = signal;
    this.#recorder = new StepRecorder(run.jobId, ports.ledger.plans, ports.clock, ports.watcher);
    this.#startedAtMs = ports.clock.nowMs();
  }

  async result(): Promise<PhaseResult> {
    const { phase } = this.#run;
    let gain: Gain;
    try {
      gain = await (phase === "execute" ? this.#execute() : this.#apply());
      if (phase === "execute") this.#signal.throwIfAborted();
    } catch (error) {
      const { logger } = this.#ports;
      // The job ends with what ended the phase, whatever becomes of the record.
      await this.#record(endOf(this.#signal, error), null).catch((fault: unknown) => {
        logger.warn({ job_id: this.#run.jobId, err: fault }, "a phase's outcome was not recorded");
      });
      throw asThrown(error);
    }
    if (phase === "execute") await this.#record(SUCCEEDED, gain);
    return { plan: this.#plan.name, files: gain.files, notes: this.#notes };
  }

  async #execute(): Promise<Gain> {
    const { base, name } = this.#plan;
    const { processes, sandboxRoot } = this.#ports;
    const workspace = await this.#workspace();
    if (base === "working-tree") await this.#recover(workspace);
    else
      await recoverAndNote(this.#ports, workspace, this.#recovering()).catch((error: unknown) => {
        // Who applies just now changes no commit.
        if (!(error instanceof WorkspaceBusy)) throw error;
      });
    await sweepSandboxes(this.#ports);
    const sandbox = await this.#pastRecovery(() =>
      workspace.openSandbox({
        base,
        name: sandboxName(name),
        root: sandboxRoot,
        owner: processes.self,
        signal: this.#signal,
        recover: { ...this.#recovering(), note: recoveryNote(this.#ports, workspace.root) },
      }),
    );
    this.#notes.push(...sandbox.notes);
    try {
      await this.#steps(sandbox.dir, sandbox.scratch);
      const { patch, files } = await sandbox.collect({ signal: this.#signal });
      const { notes, ...list } = listed(files);
      this.#notes.push(...notes);
      return { patch, ...list, baseCommit: sandbox.baseCommit };
    } finally {
      await this.#removeSandbox(sandbox);
    }
  }

  /** What is worth keeping stays so when a step left what can't be removed, such as files of another user. */
  async #removeSandbox(sandbox: Sandbox): Promise<void> {
    try {
      await sandbox.remove();
    } catch (error) {
      const { logger } = this.#ports;
      logger.warn({ job_id: this.#run.jobId, err: error }, "a sandbox can't be removed");
      this.#notes.push(`${sandbox.dir} can't be removed, and is to be removed by hand`);
    }
  }

  async #apply(): Promise<Gain> {
    const { ledger } = this.#ports;
    const { planId, jobId } = this.#run;
    const workspace = await this.#workspace();
    // What is found there may be that the patch was applied already.
    await this.#recover(workspace);
    const { run, outcome } = await executedRun(ledger, { planId, name: this.#plan.name });
    const patch = await ledger.plans.patch(run.jobId);
    if (patch === null) throw planGone(planId);
    const result = await this.#pastRecovery(async () => {
      const attempt = await workspace.apply(patch, {
        id: jobId,
        ...this.#recovering(),
        signal: this.#signal,
        note: recoveryNote(this.#ports, workspace.root),
      });
      if (attempt.kind === "busy") throw new WorkspaceBusy(attempt);
      return attempt;
    });
    if (result.kind === "conflicts") throw patchConflict(result.conflicts);
    const gain = { files: outcome.files, executeJobId: run.jobId };
    await this.#finishApply(workspace, result.applied, gain);
    return gain;
  }

  async #finishApply(workspace: Workspace, applied: Applied, gain: Gain): Promise<void> {
    try {
      await this.#steps(workspace.root, applied.scratch);
      // Told to stop before this point, all of it is taken back; after it, it stays.
      this.#signal.throwIfAborted();
    } catch (error) {
      const edited = await applied.rollBack();
      if (edited.length === 0) throw error;
      this.#notes.push(...edited.map(editedNote));
      throw editedMeanwhile(error, edited);
    }
    await applied.commit(async () => {
      try {
        await this.#record(SUCCEEDED, gain);
      } catch (fault) {
        const { logger } = this.#ports;
        logger.error(
          { job_id: this.#run.jobId, err: fault },
          "an apply's outcome was not recorded; the next use of the workspace does it",
        );
        throw fault;
      }
    });
  }

  /** @throws PhaseFailed when one failed; the signal's reason. */
  async #steps(dir: string, scratch: string): Promise<void> {
    const { env, clock, logger, graceMs, tasks } = this.#ports;
    const { phase } = this.#run;
    const ending = await runSteps({
      steps: stepsOf(this.#plan, phase),
      plan: { name: this.#plan.name, phase, env: this.#plan.env },
      dir,
      env,
      signal: this.#signal,
      clock,
      logger,
      graceMs,
      tasks,
      listener: this.#recorder,
      scratch,
    });
    this.#signal.throwIfAborted();
    if (ending.kind === "failed")
      throw new PhaseFailed("StepFailed", ending.errorMessage.replace(/^StepFailed: /, ""));
    if (ending.kind === "cancelled") throw new PhaseFailed("StepFailed", "a task was cancelled");
  }

  #workspace(): Promise<Workspace> {
    const { env, clock } = this.#ports;
    return openWorkspace(this.#plan.workspace, { env, clock });
  }

  #recover(workspace: Workspace): Promise<void> {
    return this.#pastRecovery(() => recoverAndNote(this.#ports, workspace, this.#recovering()));
  }

  #pastRecovery<T>(work: () => Promise<T>): Promise<T> {
    return pastRecovery({ clock: this.#ports.clock, signal: this.#signal }, work);
  }

  #recovering(): Omit<RecoverOptions, "note"> {
    const { ledger, processes } = this.#ports;
    return { owner: processes.self, jobId: this.#run.jobId, ...holderEnds(ledger, processes) };
  }

  async #record(
    end: Pick<PhaseOutcome, "status" | "errorMessage">,
    gain: Gain | null,
  ): Promise<void> {
    const { ledger, clock } = this.#ports;
    const { patch, ...gained } = gain ?? { files: [] };
    const outcome: PhaseOutcome = {
      ...end,
      startedAtMs: this.#startedAtMs,
      finishedAtMs: clock.nowMs(),
      notes: this.#notes,
      ...gained,
    };
    await this.#recorder.end();
    await ledger.plans.finish({
      jobId: this.#run.jobId,
      outcomeJson: JSON.stringify(outcome),
      ...(patch === undefined ? {} : { patch }),
    });
  }
}

const SUCCEEDED = { status: "succeeded", errorMessage: null } as const;

/** As the engine ends the job. */
function endOf(
  signal: AbortSignal,
  error: unknown,
): { readonly status: TerminalStatus; readonly errorMessage: string | null } {
  if (!signal.aborted) return { status: "failed", errorMessage: messageOf(error) };
  const reason: unknown = signal.reason;
  const why = reason instanceof Error ? reason.message : "";
  if (why === STOP_REASONS.time_limit)
    return { status: "timed_out", errorMessage: "TimeLimit: the phase ran for too long" };
  if (why === STOP_REASONS.lost)
    return { status: "failed", errorMessage: `WorkerLost: ${STOP_REASONS.lost}` };
  return { status: "cancelled", errorMessage: null };
}
