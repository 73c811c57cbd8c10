import type { Command } from "commander";
import { PassThrough, Readable } from "node:stream";
import { describe, expect, test } from "vitest";
import { createProgram } from "./program.js";
import { spellOutBooleans } from "./setting-flags.js";
import { createTerminal } from "./terminal.js";

/** The program, and what it prints. */
function program(): { readonly root: Command; readonly printed: () => string } {
  const stdout = new PassThrough();
  const terminal = createTerminal({ stdin: Readable.from([]), stdout, stderr: new PassThrough() });
  const root = createProgram({ terminal, exit: () => undefined, ended: () => undefined });
  return { root, printed: () => String(stdout.read()) };
}

function allBelow(command: Command): Command[] {
  return [command, ...command.commands.flatMap(allBelow)];
}

function pathOf(command: Command): string {
  return command.parent === null ? "" : `${pathOf(command.parent)} ${command.name()}`.trim();
}

const PATHS = allBelow(program().root).map(pathOf);

/** The one line below `Example:`. */
async function exampleOf(path: string): Promise<string> {
  const { root, printed } = program();
  const words = path === "" ? [] : path.split(" ");
  await root.parseAsync([...words, "--help"], { from: "user" }).catch(() => undefined);
  const [, example] = /\nExample:\n {2}\$ jobtable (.+)\n/.exec(printed()) ?? [];
  if (example === undefined) throw new Error(`no example in the help of ${path}`);
  return example;
}

/** As a shell would, as far as examples go. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? "");
}

describe.each(PATHS)("jobtable %s", (path) => {
  test("has an example in its help, of itself, that is understood", async () => {
    const example = await exampleOf(path);
    expect(example.startsWith(path)).toBe(true);
    const { root } = program();
    const reached: string[] = [];
    for (const command of allBelow(root))
      if (command.commands.length === 0) command.action(() => void reached.push(pathOf(command)));
    await root.parseAsync(spellOutBooleans(wordsOf(example)), { from: "user" });
    expect(reached).toHaveLength(1);
    expect(reached[0]?.startsWith(path)).toBe(true);
  });

  test("prints JSON when asked, unless it only groups others", () => {
    const command = allBelow(program().root).find((one) => pathOf(one) === path);
    const flags = command?.options.map(({ long }) => long);
    expect(flags?.includes("--json")).toBe(command?.commands.length === 0);
  });
});

test("every command is one of these", () => {
  expect(PATHS).toEqual([
    "",
    "serve",
    "worker",
    "submit",
    "jobs",
    "jobs list",
    "jobs show",
    "jobs wait",
    "jobs result",
    "jobs cancel",
    "jobs retry",
    "plan",
    "plan execute",
    "plan apply",
    "plan show",
    "plan diff",
    "plan list",
    "plan cancel",
    "diagnostics",
    "cleanup",
    "migrate",
    "config",
    "init",
    "completion",
  ]);
});
