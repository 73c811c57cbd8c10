/** Which plan of a store a text means: by its id or its name, or by the file that it was last used from. */
import { JobtableError } from "../job/errors.js";
import { formatPlanId, parsePlanId } from "../job/id.js";
import { MAX_PAGE } from "../job/limits.js";
import type { PlanRecord, PlanRecords } from "../ledger/plan-records.js";

/** More plans of one name than anyone tells apart. */
const MAX_FOUND = 20;

/**
 * The plan of an id or a name; null where none was seen before.
 * @param workspace where it is, where that is known; absolute.
 * @throws JobtableError `unknown_plan`: it is in several workspaces.
 */
export async function seenPlan(
  plans: PlanRecords,
  asked: string,
  workspace?: string,
): Promise<PlanRecord | null> {
  const all = await plans.find(parsePlanId(asked) ?? asked, MAX_FOUND);
  const found = all.filter((plan) => workspace === undefined || plan.workspace === workspace);
  const [plan = null, ...others] = found;
  if (others.length === 0) return plan;
  const each = found.map(({ planId, workspace }) => `${formatPlanId(planId)} in ${workspace}`);
  throw new JobtableError(
    "unknown_plan",
    `plan ${asked} is in ${String(found.length)} workspaces; name it by its id: ${each.join(", ")}`,
  );
}

/** The one that was used last of those that came from a file; null where none did. @param file absolute. */
export async function planOfFile(plans: PlanRecords, file: string): Promise<PlanRecord | null> {
  return (await plans.list(MAX_PAGE)).find((plan) => plan.file === file) ?? null;
}

export function unknownPlan(asked: string): JobtableError {
  return new JobtableError(
    "unknown_plan",
    `plan not found: ${asked}; give its file, or the id or name of one that was executed before`,
  );
}
