/** Each script is run by its own shell, where that is installed. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { describe, expect, onTestFinished, test } from "vitest";
import { createProgram } from "../program.js";
import { createTerminal } from "../terminal.js";
import { bashCompletion } from "./bash.js";
import { fishCompletion } from "./fish.js";
import { completionsOf, type Completions } from "./model.js";
import { zshCompletion } from "./zsh.js";

const streams = { stdin: Readable.from([]), stdout: new PassThrough(), stderr: new PassThrough() };
const completions = completionsOf(
  createProgram({
    terminal: createTerminal(streams),
    exit: () => undefined,
    ended: () => undefined,
  }),
);

interface Shell {
  readonly name: string;
  readonly script: (completions: Completions) => string;
  /** Prints what is offered for the last of the words, one per line. */
  readonly ask: (file: string, words: readonly string[]) => string;
}

const list = (words: readonly string[]): string => words.map((word) => `'${word}'`).join(" ");

const SHELLS: readonly Shell[] = [
  {
    name: "bash",
    script: bashCompletion,
    ask: (file, words) =>
      `source ${file}; COMP_WORDS=(${list(words)}); COMP_CWORD=${words.length - 1}; _jobtable; printf '%s\\n' "\${COMPREPLY[@]}"`,
  },
  {
    name: "zsh",
    script: zshCompletion,
    // The parts of zsh's own that it hands its words to.
    ask: (file, words) =>
      `compdef() { :; }; _files() { print FILES; }
       compadd() { shift; print -l -- "$@"; }
       _describe() { print -l -- \${(P)argv[-1]}; }
       source ${file}; words=(${list(words)}); CURRENT=${words.length}; _jobtable`,
  },
  {
    name: "fish",
    script: fishCompletion,
    ask: (file, words) => `source ${file}; complete -C '${words.join(" ")}'`,
  },
];

const isInstalled = ({ name }: Shell): boolean => spawnSync(name, ["-c", "exit 0"]).status === 0;

function offered(shell: Shell, ...words: string[]): string[] {
  const folder = mkdtempSync(join(tmpdir(), "jobtable-completion-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "completion");
  writeFileSync(file, shell.script(completions));
  const env = { ...process.env, HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder };
  const { stdout, stderr, status } = spawnSync(shell.name, ["-c", shell.ask(file, words)], {
    encoding: "utf8",
    cwd: folder,
    env,
  });
  expect({ stderr, status }).toEqual({ stderr: "", status: 0 });
  // What is said about a word comes after a colon or a tab; a shell may filter by itself.
  const last = words.at(-1) ?? "";
  return stdout
    .split("\n")
    .map((line) => line.split(/[:\t]/)[0] ?? "")
    .filter((word) => word !== "" && (word.startsWith(last) || word === "FILES"));
}

describe.each(SHELLS.filter(isInstalled))("$name", (shell) => {
  test("offers commands, and those below them", () => {
    expect(offered(shell, "jobtable", "jo")).toEqual(["jobs"]);
    expect(offered(shell, "jobtable", "")).toEqual(expect.arrayContaining(["serve", "config"]));
    expect(offered(shell, "jobtable", "jobs", "re").sort()).toEqual(["result", "retry"]);
    expect(offered(shell, "jobtable", "completion", "z")).toEqual(["zsh"]);
  });

  test("offers the flags of the command, also after other flags and arguments", () => {
    expect(offered(shell, "jobtable", "jobs", "list", "--st")).toEqual(
      expect.arrayContaining(["--state", "--store"]),
    );
    expect(offered(shell, "jobtable", "submit", "--input", "serve", "ocr", "--wa")).toEqual([
      "--wait",
    ]);
    expect(offered(shell, "jobtable", "jobs", "--json", "show", "--fol")).toEqual(["--follow"]);
  });

  test("offers the values that a flag takes", () => {
    expect(offered(shell, "jobtable", "serve", "--log-level", "de")).toEqual(["debug"]);
    expect(offered(shell, "jobtable", "jobs", "list", "--state", "p")).toEqual(["pending"]);
  });
});

test("bash at least is there to be asked", () => {
  expect(SHELLS.filter(isInstalled).map(({ name }) => name)).toContain("bash");
});

test.each(SHELLS)("the script for $name knows every command and flag", ({ script }) => {
  const text = script(completions);
  for (const { words, flags } of completions.places) {
    for (const word of words) expect(text).toContain(word.text);
    for (const name of flags.flatMap(({ names }) => names))
      expect(text).toContain(name.replace(/^-+/, ""));
  }
});
