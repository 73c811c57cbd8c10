/**
 * From what a user asks for to a plan: a file, the id or name of a plan that was used before, or a plan
 * that a program made. Whoever must not name files (HTTP) asks for what is known.
 */
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import type { PlanRecord } from "../ledger/plan-records.js";
import { systemProcesses } from "../runtime/process-identity.js";
import type { Fit } from "./apply/apply.js";
import type { PlanFile } from "./file/define.js";
import { planFromObject } from "./file/from-object.js";
import { readPlanFile } from "./file/read.js";
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
 * A file as it is now; or as `readKnown` has it.
 * @param folder for paths, and for a plan that names no workspace; absolute.
 * @throws JobtableError `invalid_plan`, `invalid_workspace`, `unknown_plan`
 */
export async function readAsked(here: PlansHere, asked: string, folder: string): Promise<ReadPlan> {
  return (await isFile(asked)) ? readFrom(here, asked, folder) : readKnown(here, asked);
}

/**
 * What was used under an id or a name: its file as it is now; or as it was recorded, where the file is
 * gone, can't be read here, or is another plan by now.
 * @throws JobtableError `invalid_plan`, `invalid_workspace`, `unknown_plan`
 */
export async function readKnown(here: PlansHere, asked: string): Promise<ReadPlan> {
  const plan = await here.plans.find(asked);
  const { file, name, workspace } = plan;
  if (file !== null && (await isReadable(file))) {
    const read = await readFrom(here, file, workspace);
    if (read.definition.name === name && read.definition.workspace === workspace) return read;
  }
  return { definition: await here.plans.lastDefinition(plan), file };
}

/**
 * A plan that a program made.
 * @throws JobtableError `invalid_plan`, `invalid_workspace`
 */
export function readObject({ host }: PlansHere, value: unknown, folder: string): Promise<ReadPlan> {
  return located(host, planFromObject(value), folder);
}

/**
 * The plan that a file, an id or a name means.
 * @throws JobtableError as `readAsked`
 */
export async function findAsked(
  here: PlansHere,
  asked: string,
  folder: string,
): Promise<PlanRecord> {
  if (!(await isFile(asked))) return here.plans.find(asked);
  const { definition } = await readFrom(here, asked, folder);
  return here.plans.find(definition.name, definition.workspace);
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
  await workspace.requireSettled(systemProcesses());
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
  return { definition: { ...plan, workspace: root }, file };
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
