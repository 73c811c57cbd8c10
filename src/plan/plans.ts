/**
 * Plans as their users meet them: found by file, id or name, started, looked at, cancelled. A phase is
 * a job (`plan_id`, `phase`) that any worker on the machine of the workspace may run, or only the
 * process that asked, in place.
 *
 * One phase of a plan at a time, over all processes: each of its jobs is submitted with an idempotency
 * key that names the job before it, which must have ended. Of several who ask at once exactly one gets
 * the key; the others are told whose it is. No clock and no lock is involved.
 */
import type { Engine, RecordResult } from "../engine/api.js";
import { JobtableError } from "../job/errors.js";
import type { Job, NewJob, Phase } from "../job/job.js";
import { encodePlanPayload, PLAN_TASKS, PLAN_VERSION } from "../job/payload.js";
import { isTerminal } from "../job/state.js";
import type { CancelOutcome, Ledger, SubmitOutcome } from "../ledger/ledger.js";
import type { PlanRecord } from "../ledger/plan-records.js";
import type { Processes } from "../runtime/process-identity.js";
import { executedRun, newestPatch, nothingToApply, type NewestPatch } from "./applicable.js";
import type { HolderEnds } from "./apply/lock.js";
import { askedBy, askerOf } from "./asker.js";
import type { PlanDefinition } from "./definition.js";
import { holderEnds } from "./holder-ends.js";
import { planOfFile, seenPlan, unknownPlan } from "./find-plan.js";
import type { PhaseOutcome } from "./outcome.js";
import { runOf, viewOf, type LookAtPlan, type PlanView, type RunView } from "./view.js";

const MAX_LISTED = 1_000;
/** Looked at together; each may bring megabytes. */
const LOOKS_AT_ONCE = 8;

export interface PlansPorts {
  readonly ledger: Ledger;
  readonly newId: () => string;
  readonly processes: Processes;
  /** Bound on queued + running, for phases that wait for a worker. */
  readonly asyncMaxQueue: number;
  /** Where the process has one that serves: its jobs are counted, and its maintenance learns of them. */
  readonly engine?: Pick<Engine, "record">;
}

/** A plan that is to be executed: as it was read, with its workspace found. */
export interface ReadPlan {
  readonly definition: PlanDefinition;
  /** Absolute path; null where a program gave it. */
  readonly file: string | null;
}

/** Where a phase runs; left out: in any worker, within the bound of the queue. */
export interface Place {
  /** Of the job. */
  readonly jobId: string;
  /** A task that only this process's worker claims. */
  readonly task: string;
}

export type StartOutcome =
  | { readonly kind: "started"; readonly plan: PlanRecord; readonly job: Job }
  /** Another phase of this plan, or the same, waits or runs. */
  | { readonly kind: "held"; readonly plan: PlanRecord; readonly job: Job }
  | Full;

/** `retryAfterS`: whole seconds, 1 to 60. */
interface Full {
  readonly kind: "full";
  readonly limit: number;
  readonly retryAfterS: number;
}

type NotReady = Extract<RecordResult, { readonly kind: "not_ready" }>;
type Submitted = Exclude<SubmitOutcome, { readonly kind: "full" }> | Full | NotReady;
type Next = { readonly kind: "started" | "held"; readonly job: Job } | Full | NotReady;

/** The run whose patch would be applied. */
export interface Applicable {
  readonly definition: PlanDefinition;
  readonly outcome: PhaseOutcome;
  readonly patch: Uint8Array;
}

export class Plans {
  readonly #ports: PlansPorts;

  constructor(ports: PlansPorts) {
    this.#ports = ports;
  }

  /** For a job that runs in place. */
  newId(): string {
    return this.#ports.newId();
  }

  /**
   * The plan of an id or a name that was seen before.
   * @param workspace where it is, where that is known; absolute.
   * @throws JobtableError `unknown_plan`
   */
  async find(asked: string, workspace?: string): Promise<PlanRecord> {
    const plan = await this.seen(asked, workspace);
    if (plan === null) throw unknownPlan(asked);
    return plan;
  }

  /** As `find`; null where there is none. */
  async seen(asked: string, workspace?: string): Promise<PlanRecord | null> {
    return seenPlan(this.#ports.ledger.plans, asked, workspace);
  }

  /** The plan that was last used from a file; null where none was. @param file absolute. */
  async ofFile(file: string): Promise<PlanRecord | null> {
    return planOfFile(this.#ports.ledger.plans, file);
  }

  /** The plan as its last run had it. @throws JobtableError `unknown_plan` where none ever did. */
  async lastDefinition(plan: PlanRecord): Promise<PlanDefinition> {
    const { plans } = this.#ports.ledger;
    const [newest] = await plans.runs(plan.planId);
    const last = newest === undefined ? null : await plans.run(newest.jobId, { steps: false });
    if (last === null)
      throw new JobtableError(
        "unknown_plan",
        `plan ${plan.name} was never executed: give its file`,
      );
    return JSON.parse(last.definitionJson) as PlanDefinition;
  }

  async execute({ definition, file }: ReadPlan, place?: Place): Promise<StartOutcome> {
    const { name, workspace } = definition;
    const { ledger, newId } = this.#ports;
    const plan = await ledger.plans.use({ planId: newId(), name, workspace, file });
    return this.#start(plan, "execute", definition, place);
  }

  /** @throws JobtableError `nothing_to_apply` */
  async apply(plan: PlanRecord, place?: Place): Promise<StartOutcome> {
    const held = await this.#holder(plan.planId);
    if (held !== null) return { kind: "held", plan, job: held };
    return this.#start(plan, "apply", await this.executed(plan), place);
  }

  /** The plan as an apply would run it. @throws JobtableError `nothing_to_apply` */
  async executed(plan: PlanRecord): Promise<PlanDefinition> {
    const { run } = await executedRun(this.#ports.ledger, plan);
    return JSON.parse(run.definitionJson) as PlanDefinition;
  }

  /** What an apply would put on the workspace. @throws JobtableError `nothing_to_apply` */
  async applicable(plan: PlanRecord): Promise<Applicable> {
    const { run, outcome } = await executedRun(this.#ports.ledger, plan);
    const patch = await this.#ports.ledger.plans.patch(run.jobId);
    if (patch === null) throw nothingToApply(plan, "its patch is not kept any more");
    return { definition: JSON.parse(run.definitionJson) as PlanDefinition, outcome, patch };
  }

  /** How to know that whoever holds a workspace is over. */
  holderEnds(): HolderEnds {
    return holderEnds(this.#ports.ledger, this.#ports.processes);
  }

  /** The newest patch of the plan, whatever came of it later; null where there is none. */
  async diff(plan: PlanRecord): Promise<Uint8Array | null> {
    return (await this.newestPatch(plan))?.patch ?? null;
  }

  /** The same, and what came of it. */
  async newestPatch({ planId }: PlanRecord): Promise<NewestPatch | null> {
    return newestPatch(this.#ports.ledger, planId);
  }

  /** With the newest run of each phase, or the one that is asked for. */
  async show(plan: PlanRecord, options?: Pick<LookAtPlan, "jobId">): Promise<PlanView> {
    return viewOf(this.#ports.ledger, plan, options);
  }

  /** One run as it is now; null where it is not on record. @param options whether with its steps' logs. */
  async look(jobId: string, options: Required<Pick<LookAtPlan, "steps">>): Promise<RunView | null> {
    return runOf(this.#ports.ledger, jobId, options);
  }

  /** Last used first, without their steps. @param limit up to 1,000. */
  async list(limit = MAX_LISTED): Promise<PlanView[]> {
    const { ledger } = this.#ports;
    const plans = await ledger.plans.list(limit);
    const views: PlanView[] = [];
    for (let from = 0; from < plans.length; from += LOOKS_AT_ONCE) {
      const some = plans.slice(from, from + LOOKS_AT_ONCE);
      views.push(
        ...(await Promise.all(some.map((plan) => viewOf(ledger, plan, { steps: false })))),
      );
    }
    return views;
  }

  /** Of the phase that waits or runs; null where none does. */
  async cancel(plan: PlanRecord): Promise<CancelOutcome | null> {
    const job = await this.#open(plan.planId);
    if (job === null) return null;
    const [outcome] = await this.#ports.ledger.cancel([job.jobId]);
    return outcome ?? null;
  }

  async #start(
    plan: PlanRecord,
    phase: Phase,
    definition: PlanDefinition,
    place?: Place,
  ): Promise<StartOutcome> {
    const { ledger, newId, processes } = this.#ports;
    const { planId } = plan;
    const held = await this.#holder(planId);
    if (held !== null) return { kind: "held", plan, job: held };
    const jobId = place?.jobId ?? newId();
    // Before the job, which may be claimed as soon as it is recorded.
    await ledger.plans.begin({ jobId, planId, phase, definitionJson: JSON.stringify(definition) });
    const job = {
      jobId,
      planId,
      phase,
      task: place?.task ?? PLAN_TASKS[phase],
      schemaVersion: PLAN_VERSION,
      payloadJson: encodePlanPayload(
        planId,
        phase,
        place === undefined ? {} : askedBy(processes.self),
      ),
      timeoutMs: definition.timeoutMs,
    };
    const outcome = await this.#submitNext(job, place !== undefined);
    // It counts as no run of the plan, of which few are kept. One that can't be dropped is told from others.
    if (outcome.kind !== "started") await ledger.plans.drop(jobId).catch(() => undefined);
    if (outcome.kind === "not_ready") throw new JobtableError("not_ready", outcome.reason);
    return outcome.kind === "full" ? outcome : { kind: outcome.kind, plan, job: outcome.job };
  }

  /** Submits a job that comes after the newest one of its plan, which must have ended. */
  async #submitNext(job: NewJob & { readonly planId: string }, inPlace: boolean): Promise<Next> {
    for (let before = await this.#first({ planId: job.planId }); ;) {
      const key = `plan ${job.planId} after ${before?.jobId ?? "nothing"}`;
      const keyed = { ...job, idempotency: { key, fingerprint: job.jobId } };
      const outcome = await this.#submit(keyed, inPlace);
      if (outcome.kind === "full" || outcome.kind === "not_ready") return outcome;
      if (outcome.kind !== "conflict") return { kind: "started", job: outcome.job };
      // Someone was faster. Where that one has ended by now, it is the one to come after.
      if (!isTerminal(outcome.job.status)) return { kind: "held", job: outcome.job };
      before = outcome.job;
    }
  }

  async #submit(job: NewJob, inPlace: boolean): Promise<Submitted> {
    const { ledger, engine, asyncMaxQueue: limit } = this.#ports;
    if (inPlace || engine === undefined) {
      // What runs in place waits for nobody.
      const bound = { maxDepth: inPlace ? Number.MAX_SAFE_INTEGER : limit };
      const [outcome] = await ledger.submit([job], bound);
      if (outcome === undefined || outcome.kind === "full")
        return { kind: "full", limit, retryAfterS: 1 };
      return outcome;
    }
    return engine.record(job);
  }

  async #holder(planId: string): Promise<Job | null> {
    for (;;) {
      const job = await this.#open(planId);
      if (job === null || !(await this.#isOrphan(job))) return job;
      // Claimed after all, it runs: then it holds.
      await this.#ports.ledger.cancel([job.jobId]);
    }
  }

  #open(planId: string): Promise<Job | null> {
    return this.#first({ planId, statuses: ["queued", "running"] });
  }

  /** Whether it waits for a process that is gone. */
  async #isOrphan({ jobId, status, phase, task }: Job): Promise<boolean> {
    if (status !== "queued" || phase === null || task === PLAN_TASKS[phase]) return false;
    const payloadJson = await this.#ports.ledger.payload(jobId);
    const asker = payloadJson === null ? null : askerOf(payloadJson);
    return asker !== null && this.#ports.processes.isGone(asker);
  }

  /** Pages may be empty. */
  async #first(query: {
    readonly planId: string;
    readonly statuses?: readonly ("queued" | "running")[];
  }): Promise<Job | null> {
    let cursor: string | undefined;
    do {
      const page = await this.#ports.ledger.list({
        ...query,
        limit: 1,
        ...(cursor === undefined ? {} : { cursor }),
      });
      const [job] = page.jobs;
      if (job !== undefined) return job;
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return null;
  }
}
