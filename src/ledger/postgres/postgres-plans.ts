/** What the PostgreSQL ledger keeps of plans: each verb is one statement (plan-statements.ts). */
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
import { AFTER_RUN, planReader } from "../sql/plan-rows.js";
import { textOrNull } from "../sql/rows.js";
import {
  secondRun,
  storableOutcome,
  storablePlan,
  storableRun,
  storableStep,
  storedLimit,
  unknownPlan,
} from "../storable-plans.js";
import { cellReader, number, type Row } from "./rows.js";
import type { RunStatement } from "./session.js";

const { toHead, toPlan, toRun, toStep } = planReader(cellReader);

/** Runs a verb while the ledger is open, and is waited for when it closes. */
export type RunVerb = <T>(body: () => Promise<T>) => Promise<T>;

export class PostgresPlans implements PlanRecords {
  readonly #verb: RunVerb;
  readonly #run: RunStatement;

  constructor(verb: RunVerb, run: RunStatement) {
    this.#verb = verb;
    this.#run = run;
  }

  use(plan: PlanSeen): Promise<PlanRecord> {
    return this.#verb(async () => {
      const { planId, name, workspace, file } = storablePlan(plan);
      const [row] = await this.#run("usePlan", [planId, name, workspace, file]);
      if (row === undefined) throw new Error("a plan was recorded without an answer");
      return toPlan(row);
    });
  }

  find(idOrName: string, limit: number): Promise<PlanRecord[]> {
    return this.#verb(async () => {
      // Sent to the server it would become another text.
      const most = isStorable(idOrName) ? storedLimit(limit) : 0;
      return (await this.#run("findPlans", [idOrName, most])).map(toPlan);
    });
  }

  list(limit: number): Promise<PlanRecord[]> {
    return this.#verb(async () => (await this.#run("listPlans", [storedLimit(limit)])).map(toPlan));
  }

  begin(run: NewPlanRun): Promise<void> {
    return this.#verb(async () => {
      const { jobId, planId, phase, definitionJson } = storableRun(run);
      const [row] = await this.#run("beginRun", [jobId, planId, phase, definitionJson]);
      if (number(row?.[0]) === 0) throw unknownPlan(planId);
      if (number(row?.[1]) === 0) throw secondRun(jobId);
    });
  }

  drop(jobId: string): Promise<void> {
    return this.#verb(async () => {
      await this.#run("dropRun", [jobId]);
    });
  }

  writeStep(given: StepRecord): Promise<void> {
    return this.#verb(async () => {
      const { jobId, step, recordJson, log } = storableStep(given);
      await this.#run("writeStep", [jobId, step, recordJson, log]);
    });
  }

  finish(outcome: RunOutcomeRecord): Promise<void> {
    return this.#verb(async () => {
      const { jobId, outcomeJson, patch } = storableOutcome(outcome);
      await this.#run("finishRun", [jobId, outcomeJson, patch ?? null]);
    });
  }

  run(jobId: string, { steps: wanted = true }: RunLook = {}): Promise<PlanRunWithSteps | null> {
    return this.#verb(async () => {
      const [row] = await this.#run("planRun", [jobId, wanted]);
      if (row === undefined) return null;
      const steps = JSON.parse(textOrNull(row[AFTER_RUN] ?? null) ?? "[]") as Row[];
      return { ...toRun(row), steps: steps.map((step) => toStep(jobId, step)) };
    });
  }

  runs(planId: string): Promise<PlanRunHead[]> {
    return this.#verb(async () => (await this.#run("planRuns", [planId])).map(toHead));
  }

  patch(jobId: string): Promise<Uint8Array | null> {
    return this.#verb(async () => {
      const [row] = await this.#run("planPatch", [jobId]);
      const hex = textOrNull(row?.[0] ?? null);
      return hex === null ? null : new Uint8Array(Buffer.from(hex, "hex"));
    });
  }
}
