/** The library's calls for plans. What they need is loaded at the first of them. */
import { invalidInput, refusalError } from "../engine/refusal-error.js";
import { JobtableError } from "../job/errors.js";
import { MAX_PAGE } from "../job/limits.js";
import type { CancelOutcome } from "../ledger/ledger.js";
import type { PlanRecord } from "../ledger/plan-records.js";
import type { PlansHere } from "../plan/asked.js";
import type { PlanObject } from "../plan/file/schema.js";
import type { ReadPlan, StartOutcome } from "../plan/plans.js";
import type { PlanView } from "../plan/view.js";
import type { JobtablePlans, PlanCheck, PlanRef, PlanStart } from "./plan-api.js";

const DEFAULT_PAGE = 100;

/** Null where there are none. */
export type OpenPlans = (() => Promise<PlansHere>) | null;

export class LibraryPlans implements JobtablePlans {
  readonly #open: () => Promise<{ readonly plans: OpenPlans }>;

  constructor(open: () => Promise<{ readonly plans: OpenPlans }>) {
    this.#open = open;
  }

  async execute(plan: PlanRef | PlanObject): Promise<PlanStart> {
    const here = await this.#here();
    return startOf(await here.plans.execute(await readPlan(here, plan)));
  }

  async apply(plan: PlanRef): Promise<PlanStart> {
    const here = await this.#here();
    return startOf(await here.plans.apply(await find(here, plan)));
  }

  async check(plan: PlanRef): Promise<PlanCheck> {
    const here = await this.#here();
    const { checkApply } = await import("../plan/asked.js");
    const { fit, files } = await checkApply(here, await find(here, plan));
    return { fits: fit.kind === "fits", conflicts: "conflicts" in fit ? fit.conflicts : [], files };
  }

  async show(plan: PlanRef): Promise<PlanView> {
    const here = await this.#here();
    return here.plans.show(await find(here, plan));
  }

  async diff(plan: PlanRef): Promise<Uint8Array | null> {
    const here = await this.#here();
    return here.plans.diff(await find(here, plan));
  }

  async list({ limit = DEFAULT_PAGE }: { readonly limit?: number } = {}): Promise<PlanView[]> {
    if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE)
      throw invalidInput(
        `limit: must be an integer from 1 to ${String(MAX_PAGE)}, got ${String(limit)}`,
      );
    return (await this.#here()).plans.list(limit);
  }

  async cancel(plan: PlanRef): Promise<CancelOutcome | null> {
    const here = await this.#here();
    return here.plans.cancel(await find(here, plan));
  }

  async #here(): Promise<PlansHere> {
    const { plans } = await this.#open();
    if (plans === null)
      throw new JobtableError(
        "invalid_config",
        "a test jobtable has no plans: test them with createJobtable({ plans: true, ... }) on a repository of their own",
      );
    return plans();
  }
}

async function readPlan(here: PlansHere, plan: PlanRef | PlanObject): Promise<ReadPlan> {
  const { readAsked, readKnown, readObject } = await import("../plan/asked.js");
  const folder = process.cwd();
  if (typeof plan === "string") return readAsked(here, plan, folder);
  return "planId" in plan ? readKnown(here, plan.planId) : readObject(here, plan, folder);
}

async function find(here: PlansHere, plan: PlanRef): Promise<PlanRecord> {
  if (typeof plan !== "string") return here.plans.find(plan.planId);
  const { findAsked } = await import("../plan/asked.js");
  return findAsked(here, plan, process.cwd());
}

function startOf(outcome: StartOutcome): PlanStart {
  if (outcome.kind === "full") throw refusalError(outcome);
  return outcome;
}
