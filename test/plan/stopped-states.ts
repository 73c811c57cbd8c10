/**
 * What a process leaves that is killed between two changes of files, or in the midst of one: the
 * workspace and our folder in it are copied before each change, while one whole run goes on. Each copy
 * is then as if the process had ended there.
 */
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { systemFiles, type Files } from "../../src/plan/apply/files.js";
import { recover, type NoteRecovery, type Recovery } from "../../src/plan/apply/recover.js";
import { isGone, owner } from "./applying.js";
import { tapped } from "./tapped-files.js";

export interface Stopped {
  /** What was about to happen. */
  readonly change: string;
  /** All that had happened. */
  readonly earlier: readonly string[];
  /** A copy of the workspace, of whose git folder only ours is there. */
  readonly root: string;
}

/** Files of a workspace, and the states that they pass. */
export class Passage {
  readonly states: Stopped[] = [];
  readonly files: Files;
  readonly #changes: string[] = [];

  /** @param into an empty folder for the copies. */
  constructor(root: string, into: string) {
    this.files = tapped((name, at, from) => {
      const change = `${name} ${at}`;
      const keep = (spoil: (path: string) => void): void => {
        const copy = join(into, String(this.states.length));
        copyWorkspace(root, copy);
        spoil(join(copy, at.slice(root.length)));
        this.states.push({ change, earlier: [...this.#changes], root: copy });
      };
      keep(() => undefined);
      const tear = tearing(name, from);
      if (tear !== null) keep(tear);
      this.#changes.push(change);
    });
  }
}

export function copyWorkspace(root: string, to: string): void {
  const options = { recursive: true, verbatimSymlinks: true } as const;
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(root))
    if (name !== ".git") cpSync(join(root, name), join(to, name), options);
  const ours = join(".git", "jobtable");
  if (existsSync(join(root, ours))) cpSync(join(root, ours), join(to, ours), options);
}

/** What a change leaves that is only half done; null: it is done or not. */
function tearing(name: string, from: string): ((path: string) => void) | null {
  switch (name) {
    case "write":
      return (path) => {
        writeFileSync(path, '{"version":1,"ent');
      };
    case "copy":
      return (path) => {
        cpSync(from, path);
        truncateSync(path, 1);
      };
    case "removeTree":
      return removeHalf;
    default:
      return null;
  }
}

function removeHalf(path: string): void {
  if (!existsSync(path) || !lstatSync(path).isDirectory()) return;
  for (const [index, name] of readdirSync(path, { recursive: true, encoding: "utf8" }).entries())
    if (index % 2 === 0 && !lstatSync(join(path, name)).isDirectory()) rmSync(join(path, name));
}

/** In a copy, without git: recovery needs none. */
export function recoverCopy(
  root: string,
  files: Files = systemFiles,
  by = owner,
  note?: NoteRecovery,
): Promise<Recovery[]> {
  const gitDir = join(root, ".git");
  const repository = { root, gitDir, commonDir: gitDir };
  return recover({ files, repository }, join(gitDir, "jobtable"), { owner: by, isGone, note });
}
