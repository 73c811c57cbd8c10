/**
 * What the memory ledger keeps of plans. As its other verbs, each runs to its end in one turn of the
 * event loop. What is answered is made anew each time, so that it stays as it was.
 */
import {
  KEPT_PLANS,
  KEPT_RUNS,
  type NewPlanRun,
  type PlanRecord,
  type PlanRecords,
  type PlanRun,
  type PlanRunHead,
  type PlanRunWithSteps,
  type PlanSeen,
  type RunLook,
  type RunOutcomeRecord,
  type StepRecord,
} from "../plan-records.js";
import {
  secondRun,
  storableOutcome,
  storablePlan,
  storableRun,
  storableStep,
  storedLimit,
  unknownPlan,
} from "../storable-plans.js";

/** Runs a verb at once and to its end; what it throws is the rejection. */
export type RunVerb = <T>(body: (at: { readonly nowMs: number }) => T) => Promise<T>;

interface KeptRun {
  readonly begun: NewPlanRun & Pick<PlanRun, "createdAtMs">;
  readonly steps: Map<number, StepRecord>;
  outcomeJson: string | null;
  patch: Uint8Array | null;
}

export class MemoryPlans implements PlanRecords {
  readonly #verb: RunVerb;
  /** By id. */
  readonly #plans = new Map<string, PlanRecord>();
  /** By the id of their job. */
  readonly #runs = new Map<string, KeptRun>();

  constructor(verb: RunVerb) {
    this.#verb = verb;
  }

  use(plan: PlanSeen): Promise<PlanRecord> {
    return this.#verb(({ nowMs }) => {
      const { planId, name, workspace, file } = storablePlan(plan);
      const known = [...this.#plans.values()].find(
        (other) => other.name === name && other.workspace === workspace,
      );
      const used: PlanRecord =
        known === undefined
          ? { planId, name, workspace, file, createdAtMs: nowMs, usedAtMs: nowMs }
          : { ...known, file, usedAtMs: nowMs };
      if (known === undefined && this.#plans.has(planId))
        throw new Error(`plan records: planId: ${planId} is another plan's`);
      this.#plans.set(used.planId, used);
      if (known === undefined) this.#forgetPlans(planId);
      return { ...used };
    });
  }

  find(idOrName: string, limit: number): Promise<PlanRecord[]> {
    return this.#verb(() =>
      this.#lastUsedFirst()
        .filter(({ planId, name }) => planId === idOrName || name === idOrName)
        .slice(0, storedLimit(limit)),
    );
  }

  list(limit: number): Promise<PlanRecord[]> {
    return this.#verb(() => this.#lastUsedFirst().slice(0, storedLimit(limit)));
  }

  begin(run: NewPlanRun): Promise<void> {
    return this.#verb(({ nowMs }) => {
      const begun = { ...storableRun(run), createdAtMs: nowMs };
      if (!this.#plans.has(begun.planId)) throw unknownPlan(begun.planId);
      if (this.#runs.has(begun.jobId)) throw secondRun(begun.jobId);
      this.#forgetRuns(begun.planId);
      this.#runs.set(begun.jobId, { begun, steps: new Map(), outcomeJson: null, patch: null });
    });
  }

  drop(jobId: string): Promise<void> {
    return this.#verb(() => {
      if (this.#runs.get(jobId)?.outcomeJson === null) this.#runs.delete(jobId);
    });
  }

  writeStep(step: StepRecord): Promise<void> {
    return this.#verb(() => {
      const stored = storableStep(step);
      this.#runs.get(stored.jobId)?.steps.set(stored.step, stored);
    });
  }

  finish(outcome: RunOutcomeRecord): Promise<void> {
    return this.#verb(() => {
      const { jobId, outcomeJson, patch } = storableOutcome(outcome);
      const run = this.#runs.get(jobId);
      if (run === undefined) return;
      run.outcomeJson = outcomeJson;
      if (patch !== undefined) run.patch = patch;
    });
  }

  run(jobId: string, { steps: wanted = true }: RunLook = {}): Promise<PlanRunWithSteps | null> {
    return this.#verb(() => {
      const run = this.#runs.get(jobId);
      if (run === undefined) return null;
      const steps = (wanted ? [...run.steps.values()] : []).sort((a, b) => a.step - b.step);
      return { ...recordOf(run), steps: steps.map((step) => ({ ...step })) };
    });
  }

  runs(planId: string): Promise<PlanRunHead[]> {
    return this.#verb(() => this.#newestFirst(planId).map(headOf));
  }

  patch(jobId: string): Promise<Uint8Array | null> {
    return this.#verb(() => {
      const patch = this.#runs.get(jobId)?.patch ?? null;
      return patch === null ? null : new Uint8Array(patch);
    });
  }

  #lastUsedFirst(): PlanRecord[] {
    return [...this.#plans.values()]
      .map((plan) => ({ ...plan }))
      .sort((a, b) => b.usedAtMs - a.usedAtMs || (a.planId < b.planId ? 1 : -1));
  }

  #newestFirst(planId: string): KeptRun[] {
    return [...this.#runs.values()]
      .filter(({ begun }) => begun.planId === planId)
      .sort(
        ({ begun: a }, { begun: b }) =>
          b.createdAtMs - a.createdAtMs || (a.jobId < b.jobId ? 1 : -1),
      );
  }

  /** @param usedId stays, whatever the clock says. */
  #forgetPlans(usedId: string): void {
    const others = this.#lastUsedFirst().filter(({ planId }) => planId !== usedId);
    for (const { planId } of others.slice(KEPT_PLANS - 1)) {
      this.#plans.delete(planId);
      for (const { begun } of this.#newestFirst(planId)) this.#runs.delete(begun.jobId);
    }
  }

  /** Makes room for one more. */
  #forgetRuns(planId: string): void {
    const runs = this.#newestFirst(planId);
    const withPatch = runs.find(({ patch }) => patch !== null);
    const applied = runs.find(
      ({ begun, outcomeJson }) => begun.phase === "apply" && outcomeJson !== null,
    );
    for (const run of runs.slice(KEPT_RUNS - 1))
      if (run !== withPatch && run !== applied) this.#runs.delete(run.begun.jobId);
  }
}

function headOf({ begun, outcomeJson, patch }: KeptRun): PlanRunHead {
  const { jobId, planId, phase, createdAtMs } = begun;
  const patchBytes = patch?.byteLength ?? null;
  return { jobId, planId, phase, createdAtMs, hasEnded: outcomeJson !== null, patchBytes };
}

function recordOf({ begun, outcomeJson, patch }: KeptRun): PlanRun {
  return { ...begun, outcomeJson, patchBytes: patch?.byteLength ?? null };
}
