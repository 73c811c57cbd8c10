/**
 * The workspace of a kill run: some hundred files of every kind, dirty in every way a user's can be, and
 * the plan that changes most of them. It can be made as it was at the start as often as it takes.
 */
import { spawnSync } from "node:child_process";
import { chmodSync, readdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import type { PlanDefinition, StepDefinition } from "../../../src/plan/definition.js";
import { gitState, snapshot, type Scratch } from "../scratch.js";

const TEXTS = 160;
const LINES = Array.from({ length: 40 }, (_, line) => `line ${String(line)}\n`).join("");

/** Changes, adds, renames, deletes, links and modes; a background process; and time to be killed in. */
const EXECUTE = `
sleep 300 &
for file in text/*; do sed -i "s/line 20/line twenty/" "$file"; done
for file in gone/*; do rm "$file"; done
mkdir -p moved/deep && for file in move/*; do mv "$file" moved/deep; done
for file in binary/*; do printf 'new\\000\\377bytes' > "$file"; done
chmod 755 modes/a modes/b && chmod 644 modes/c
rm links/one && ln -s ../text/2 links/one && ln -s nowhere links/new
rm kind && mkdir kind && echo file > kind/file
for file in odd/*; do echo more >> "$file"; done
mkdir -p new/er && for name in 1 2 3 4 5 6 7 8 9; do echo "$name" > "new/er/  $name \\"'"; done
`;
/** What a step makes beside the patch stays when it is killed, is ignored by git, and not looked at by us. */
const BESIDE = "scratch.ignored";
const APPLY = `
sleep 300 &
test -f kind/file && head -c 2000000 /dev/urandom > "$JOBTABLE_WORKSPACE/${BESIDE}"
rm ${BESIDE}
sleep 0.1
`;

const LEFT_OUT: ReadonlySet<string> = new Set([".git", BESIDE]);

export class KillWorkspace {
  readonly root: string;
  /** Git's folder of it. */
  readonly gitDir: string;
  readonly #pristine: string;

  constructor(scratch: Scratch) {
    this.root = repository(scratch);
    this.gitDir = join(this.root, ".git");
    this.#pristine = scratch.path("pristine");
    copy(this.root, this.#pristine);
  }

  plan(name: string, base: PlanDefinition["base"]): PlanDefinition {
    return {
      name,
      workspace: this.root,
      base,
      env: {},
      timeoutMs: null,
      execute: [step("Change", EXECUTE)],
      apply: [step("Check", APPLY)],
    };
  }

  /** Everything that is the user's: files, modes, links, folders, index, stash, HEAD, refs, hooks, config. */
  look(): Readonly<Record<string, string>> {
    const git = Object.entries(gitState(this.gitDir)).map(([path, text]) => [`.git/${path}`, text]);
    return Object.fromEntries([...Object.entries(snapshot(this.root, LEFT_OUT)), ...git]) as Record<
      string,
      string
    >;
  }

  reset(): void {
    const old = `${this.root}.old`;
    renameSync(this.root, old);
    copy(this.#pristine, this.root);
    spawnSync("rm", ["-rf", old]);
  }

  /** What an apply, or a sandbox, has there that ought to be gone by now. */
  leftovers(): string[] {
    const list = (folder: string): string[] => {
      const path = join(this.gitDir, folder);
      try {
        return readdirSync(path).map((name) => `.git/${folder}/${name}`);
      } catch {
        return []; // It was never made, or is being removed just now.
      }
    };
    const folders = ["jobtable/applies", "jobtable/trash", "jobtable/kept", "worktrees"];
    return folders.flatMap(list);
  }
}

function step(name: string, run: string): StepDefinition {
  const shell = ["sh", "-e", "-c"];
  const common = { id: null, timeoutMs: null, continueOnError: false };
  return { kind: "command", name, run, shell, cwd: ".", env: {}, ...common };
}

function repository(scratch: Scratch): string {
  const numbered = (folder: string, count: number, text: string): [string, string][] =>
    Array.from({ length: count }, (_, n) => [`${folder}/${String(n)}`, `${text}${String(n)}\n`]);
  const odd = ["-dash", "a b", 'q"uo', "new\nline", "ünï 日本", "star*", "$(touch x)", "tab\t"];
  const root = scratch.repository(
    "workspace",
    Object.fromEntries([
      ...numbered("text", TEXTS, LINES),
      ...numbered("gone", 30, "g"),
      ...numbered("move", 30, LINES),
      ...numbered("binary", 20, "b\0"),
      ...odd.map((name) => [`odd/${name}`, `${name}\n`]),
      ["modes/a", "a\n"],
      ["modes/b", "b\n"],
      ["modes/c", "c\n"],
      ["kind", "a file\n"],
      ["bystander", "1\n"],
      [".gitignore", "*.ignored\n"],
    ]) as Record<string, string>,
  );
  const at = (path: string): string => join(root, path);
  chmodSync(at("modes/c"), 0o755);
  scratch.link(at("links/one"), "../text/1");
  scratch.commit(root);
  scratch.write(at("bystander"), "stashed\n");
  scratch.git(root, "stash", "-q");
  scratch.write(at("bystander"), "staged\n");
  scratch.git(root, "add", "bystander");
  scratch.write(at("bystander"), "and more\n");
  scratch.write(at("untracked/file"), "u\n");
  scratch.write(at("kept.ignored"), "i\n");
  chmodSync(at("text/3"), 0o640);
  scratch.git(root, "branch", "other");
  return root;
}

function copy(from: string, to: string): void {
  const { status, stderr } = spawnSync("cp", ["-a", from, to], { encoding: "utf8" });
  if (status !== 0) throw new Error(`cp: ${stderr}`);
}
