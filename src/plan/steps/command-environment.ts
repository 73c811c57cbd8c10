/**
 * What a command finds around it: its variables, its folder, its shell. Credentials of the worker
 * and git's pointers to other repositories are taken away, whatever they point to.
 */
import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { delimiter, isAbsolute, join, relative, resolve, sep } from "node:path";
import type { Phase } from "../../job/job.js";
import { codeOf } from "../../runtime/error-code.js";
import { RESERVED_VARIABLES } from "../definition.js";
import { MARKER } from "./step-guard.js";
import { StepFailure } from "./step-failure.js";

export type Environment = Readonly<Record<string, string>>;

/** Where a machine keeps its programs, for a worker that was started with an empty environment. */
export const DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin";

export interface EnvironmentParts {
  /** Of the worker. */
  readonly base: Readonly<Record<string, string | undefined>>;
  /** Of the plan and of the step, evaluated; later ones win. */
  readonly own: readonly Environment[];
  readonly plan: string;
  readonly phase: Phase;
  /** Absolute paths without links. */
  readonly workspace: string;
  readonly cwd: string;
  /** Unique on this machine. */
  readonly marker: string;
}

export function commandEnvironment(parts: EnvironmentParts): Environment {
  const variables = new Map<string, string>();
  for (const [name, value] of Object.entries(parts.base))
    if (value !== undefined && !RESERVED_VARIABLES.some((prefix) => name.startsWith(prefix)))
      variables.set(name, value);
  // Of the folder that the worker came from.
  variables.delete("OLDPWD");
  if (!variables.has("PATH")) variables.set("PATH", DEFAULT_PATH);
  for (const own of parts.own)
    for (const [name, value] of Object.entries(own)) variables.set(name, value);
  variables
    .set("PWD", parts.cwd)
    .set("JOBTABLE_PLAN", parts.plan)
    .set("JOBTABLE_PHASE", parts.phase)
    .set("JOBTABLE_WORKSPACE", parts.workspace)
    .set(MARKER, parts.marker);
  return Object.fromEntries(variables);
}

/**
 * Looks where the folder is now, links followed.
 * @param root absolute, without links.
 * @throws StepFailure where it is not inside `root`.
 */
export function workingFolder(root: string, cwd: string): string {
  let folder: string;
  try {
    folder = realpathSync(resolve(root, cwd));
    if (!statSync(folder).isDirectory()) throw badCwd(`${JSON.stringify(cwd)} is no folder`);
  } catch (error) {
    if (error instanceof StepFailure) throw error;
    const reason = REASONS[codeOf(error)] ?? (error instanceof Error ? error.message : "");
    throw badCwd(`${JSON.stringify(cwd.slice(0, 200))} ${reason}`);
  }
  const way = relative(root, folder);
  if (way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way))
    throw badCwd(`${JSON.stringify(cwd)} leads out of the working tree`);
  return folder;
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "is not there",
  ENOTDIR: "is not there",
  EACCES: "can't be entered",
  ELOOP: "is a circle of links",
  ENAMETOOLONG: "is too long for a path",
};

function badCwd(detail: string): StepFailure {
  return new StepFailure("InvalidCwd", `the folder ${detail}`);
}

/**
 * @param program as `exec` would look for it in `cwd` with this `PATH`.
 * @throws StepFailure where it would find nothing that it may run.
 */
export function requireProgram(program: string, path: string, cwd: string): void {
  const places = program.includes("/")
    ? [resolve(cwd, program)]
    : path.split(delimiter).map((folder) => resolve(cwd, join(folder, program)));
  const there = places.filter(isFile);
  if (there.some(mayRun)) return;
  const where = program.includes("/") ? "is not there" : "is not in PATH";
  throw new StepFailure(
    "ShellNotFound",
    `the shell ${JSON.stringify(program)} ${there.length > 0 ? "may not be executed" : where}`,
  );
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function mayRun(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
