/** Plans that a program makes: the same shape and checks as of a file, without the file. */
import { encodeJson, ResultNotSerializable } from "../../task/json.js";
import { definePlan, type PlanFile } from "./define.js";
import { Findings, InvalidPlan, type PlanSource } from "./findings.js";
import { MAX_FILE_BYTES } from "./schema.js";

const NAME = "plan";
const SOURCE: PlanSource = { name: NAME, place: () => null, written: () => undefined };

/**
 * @param value what a plan file would hold; a relative `workspace` counts from the current folder.
 * @throws InvalidPlan whose messages name paths: `plan: execute[0].run: ...`.
 */
export function planFromObject(value: unknown): PlanFile {
  return definePlan(asJson(value), SOURCE, new Findings(SOURCE), null);
}

/** A copy that nobody changes afterwards: dates and the like become what JSON makes of them. */
function asJson(value: unknown): unknown {
  try {
    return JSON.parse(encodeJson(value, NAME, MAX_FILE_BYTES)) as unknown;
  } catch (error) {
    if (!(error instanceof ResultNotSerializable)) throw error;
    throw new InvalidPlan(NAME, [
      { path: "", place: null, message: error.message.slice(NAME.length + 1) },
    ]);
  }
}
