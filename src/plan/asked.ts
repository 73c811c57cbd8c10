/**
 * From what a user asks for to a plan: the id or name of a plan that was used before, a file, or a plan
 * that a program made. Whoever must not name files (HTTP) asks for what is known.
 */
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { JobtableError, LedgerError } from "../job/errors.js";
import { MAX_PATH_BYTES } from "../job/limits.js";
import type { PlanRecord } from "../ledger/plan-records.js";
import type { Fit } from "./apply/apply.js";
import type { PlanFile } from "./file/define.js";
import { planFromObject } from "./file/from-object.js";
import { readPlanFile } from "./file/read.js";
import { unknownPlan } from "./find-plan.js";
import type { GitHost } from "./git/git.js";
import type { Plans, ReadPlan } from "./plans.js";
import type { FileSummary } from "./workspace/file-summary.js";
import { openWorkspace } from "./workspace/workspace.js";

/** The plans of a store, and the machine where files and workspaces are looked for. */
export interface PlansHere {
  readonly plans: Plans;
  /** What git is called with. */
  readonly host: GitHost;
}

export interface CheckedApply {
  readonly fit: Fit;
  /** What the patch changes. */
  readonly files: readonly FileSummary[];
}

/**
 * What a text means: a plan that was used before, by its id or name, as `readKnown` has it; or a file as
 * it is now. A text with a slash in it is a path.
 * @param folder for a plan that names no workspace; absolute.
 * @throws JobtableError `invalid_plan`, `invalid_workspace`, `unknown_plan`
 */
export async function readAsked(here: PlansHere, asked: string, folder: string): Promise<ReadPlan> {
  const named = await seenByName(here, asked);
  if (named !== null) return readRecord(here, named);
  if (await isFile(asked)) return readFrom(here, asked, folder);
  throw unknownPlan(asked);
}

/**
 * What was used under an id or a name: its file as it is now; or as it was recorded, where the file is
 * gone, can't be read here, or is another plan by now.
 * @throws JobtableError `invalid_plan`, `invalid_workspace`, `unknown_plan`
 */
export async function readKnown(here: PlansHere, asked: string): Promise<ReadPlan> {
  return readRecord(here, await here.plans.find(asked));
}

async function readRecord(here: PlansHere, plan: PlanRecord): Promise<ReadPlan> {
  return (
    (await readAgain(here, plan)) ?? {
      definition: await here.plans.lastDefinition(plan),
      file: plan.file,
    }
  );
}

/** Null where the file is gone, can't be read here, or is another plan by now. */
async function readAgain(
  here: PlansHere,
  { file, name, workspace }: PlanRecord,
): Promise<ReadPlan | null> {
  if (file === null || !(await isReadable(file))) return null;
  const read = await readFrom(here, file, workspace);
  const { definition } = read;
  return definition.name === name && definition.workspace === workspace ? read : null;
}

/**
 * A plan that a program made.
 * @throws JobtableError `invalid_plan`, `invalid_workspace`
 */
export function readObject({ host }: PlansHere, value: unknown, folder: string): Promise<ReadPlan> {
  return located(host, planFromObject(value), folder);
}

/**
 * The plan that an id, a name or a file means; of a file that can't be read any more, the plan that was
 * last used from it.
 * @throws JobtableError as `readAsked`
 */
export async function findAsked(
  here: PlansHere,
  asked: string,
  folder: string,
): Promise<PlanRecord> {
  const named = await seenByName(here, asked);
  if (named !== null) return named;
  if (!(await isFile(asked))) throw unknownPlan(asked);
  try {
    const { definition } = await readFrom(here, asked, folder);
    return await here.plans.find(definition.name, definition.workspace);
  } catch (error) {
    const plan = isUnreadable(error) ? await here.plans.ofFile(resolve(asked)) : null;
    if (plan === null) throw error;
    return plan;
  }
}

function isUnreadable(error: unknown): boolean {
  return (
    error instanceof JobtableError &&
    (error.code === "invalid_plan" || error.code === "invalid_workspace")
  );
}

/**
 * Why an apply would run other steps than the plan's file has by now, which are those that the execute
 * recorded: the file was edited since, or is no plan any more. Null where there is nothing to say.
 */
export async function editedSince(
  here: PlansHere,
  plan: PlanRecord,
): Promise<"edited" | "unreadable" | null> {
  try {
    const { apply, env } = await here.plans.executed(plan);
    const now = (await readAgain(here, plan))?.definition;
    if (now === undefined) return null;
    return isDeepStrictEqual([now.apply, now.env], [apply, env]) ? null : "edited";
  } catch (error) {
    if (!(error instanceof JobtableError) || error instanceof LedgerError) throw error;
    // Of what else there may be the apply says it itself.
    return error.code === "invalid_plan" ? "unreadable" : null;
  }
}

/**
 * Whether the patch that an apply would take fits now. Changes nothing.
 * @throws JobtableError `nothing_to_apply`, `invalid_workspace`; `apply_failed` where another apply is
 *   under way, or was cut short
 */
export async function checkApply(
  { plans, host }: PlansHere,
  plan: PlanRecord,
): Promise<CheckedApply> {
  const { definition, patch, outcome } = await plans.applicable(plan);
  const workspace = await openWorkspace(definition.workspace, host);
  await workspace.requireSettled(plans.holderEnds());
  return { fit: await workspace.checkApply(patch), files: outcome.files };
}

/** @param fallback the workspace of a plan that names none, or a folder in it. */
async function readFrom({ host }: PlansHere, path: string, fallback: string): Promise<ReadPlan> {
  return located(host, await readPlanFile(path), fallback);
}

async function located(
  host: GitHost,
  { file, workspace, ...plan }: PlanFile,
  fallback: string,
): Promise<ReadPlan> {
  const { root } = await openWorkspace(workspace ?? fallback, host);
  if (isTooLong(root))
    throw new JobtableError(
      "invalid_workspace",
      `the workspace ${JSON.stringify(root)} ${TOO_LONG}`,
    );
  if (file !== null && isTooLong(file))
    throw new JobtableError("invalid_plan", `${file}: its path ${TOO_LONG}`);
  return { definition: { ...plan, workspace: root }, file };
}

const TOO_LONG = `is longer than ${String(MAX_PATH_BYTES)} bytes, the most that is recorded: move it`;

function isTooLong(path: string): boolean {
  return Buffer.byteLength(path) > MAX_PATH_BYTES;
}

async function seenByName({ plans }: PlansHere, asked: string): Promise<PlanRecord | null> {
  return /[/\\]/.test(asked) ? null : plans.seen(asked);
}

/** What looks like the path of a plan is one, also when nothing is there: then that is told. */
async function isFile(asked: string): Promise<boolean> {
  return /[/\\]|\.(ya?ml|json)$/.test(asked) || isThere(asked);
}

async function isReadable(path: string): Promise<boolean> {
  if (!(await isThere(path))) return false;
  return access(path, constants.R_OK).then(
    () => true,
    () => false,
  );
}

function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
}
