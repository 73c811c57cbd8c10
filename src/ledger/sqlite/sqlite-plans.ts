/** What the SQLite ledger keeps of plans: checks, sends to the database thread, and reads its answers. */
import { isStorable } from "../../job/limits.js";
import type {
  NewPlanRun,
  PlanRecord,
  PlanRecords,
  PlanRunHead,
  PlanRunWithSteps,
  PlanSeen,
  RunLook,
  RunOutcomeRecord,
  StepRecord,
} from "../plan-records.js";
import { planReader } from "../sql/plan-rows.js";
import {
  storableOutcome,
  storablePlan,
  storableRun,
  storableStep,
  storedLimit,
} from "../storable-plans.js";
import { cellReader } from "./rows.js";
import type { ThreadLink } from "./thread-link.js";

const { toHead, toPlan, toRun, toStep } = planReader(cellReader);

export class SqlitePlans implements PlanRecords {
  readonly #link: ThreadLink;

  constructor(link: ThreadLink) {
    this.#link = link;
  }

  async use(plan: PlanSeen): Promise<PlanRecord> {
    return this.#link.call({ verb: "usePlan", plan: storablePlan(plan) }, toPlan);
  }

  async find(idOrName: string, limit: number): Promise<PlanRecord[]> {
    // Bound to a statement it would become another text.
    const most = isStorable(idOrName) ? storedLimit(limit) : 0;
    return this.#link.call({ verb: "findPlans", idOrName, limit: most }, (rows) =>
      rows.map(toPlan),
    );
  }

  async list(limit: number): Promise<PlanRecord[]> {
    return this.#link.call({ verb: "listPlans", limit: storedLimit(limit) }, (rows) =>
      rows.map(toPlan),
    );
  }

  async begin(run: NewPlanRun): Promise<void> {
    return this.#link.call({ verb: "beginRun", run: storableRun(run) }, () => undefined);
  }

  async drop(jobId: string): Promise<void> {
    return this.#link.call({ verb: "dropRun", jobId }, () => undefined);
  }

  async writeStep(step: StepRecord): Promise<void> {
    return this.#link.call({ verb: "writeStep", step: storableStep(step) }, () => undefined);
  }

  async finish(outcome: RunOutcomeRecord): Promise<void> {
    const stored = storableOutcome(outcome);
    return this.#link.call({ verb: "finishRun", outcome: stored }, () => undefined);
  }

  async run(jobId: string, { steps = true }: RunLook = {}): Promise<PlanRunWithSteps | null> {
    return this.#link.call({ verb: "planRun", jobId, steps }, (answer) =>
      answer === null
        ? null
        : { ...toRun(answer.run), steps: answer.steps.map((row) => toStep(jobId, row)) },
    );
  }

  async runs(planId: string): Promise<PlanRunHead[]> {
    return this.#link.call({ verb: "planRuns", planId }, (rows) => rows.map(toHead));
  }

  async patch(jobId: string): Promise<Uint8Array | null> {
    return this.#link.call({ verb: "planPatch", jobId }, (patch) => patch);
  }
}
