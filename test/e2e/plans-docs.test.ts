/** What docs/plans.md and examples/plans/README.md print, run as it stands there. */
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { expect, test, vi } from "vitest";
import { MAIN, Process, scratch } from "./server.js";

// Some read images, or start a dozen processes.
vi.setConfig({ testTimeout: 240_000 });

/** One that never ends would hold up the whole run. */
const BOUNDED = { timeout: 180_000, killSignal: "SIGKILL" } as const;

const PROJECT = resolve(import.meta.dirname, "../..");

function page(path: string): string {
  return readFileSync(join(PROJECT, path), "utf8");
}

/** Blocks of commands, each as one text. */
function shellBlocks(text: string): string[] {
  const prose = text.replaceAll(/^```[\s\S]*?^```$/gm, "");
  const blocks = prose.match(/(?:^ {4}\S.*\n)+/gm) ?? [];
  return blocks.map((block) => block.replaceAll(/^ {4}/gm, ""));
}

/** Blocks of files, whose first line names them in a comment. */
function fileBlocks(text: string): (readonly [string, string])[] {
  const blocks = text.matchAll(/^```\w+\n(?:# |\/\/ )(\S+\.\w+)\n[\s\S]*?^```$/gm);
  return [...blocks].map(([block, name = ""]) => [name, block.split("\n").slice(1, -1).join("\n")]);
}

/** A program called jobtable, and nothing of whoever runs the tests. */
function environment(folder: string): Record<string, string> {
  const bin = join(folder, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "jobtable"), `#!/bin/sh\nexec "${process.execPath}" "${MAIN}" "$@"\n`);
  chmodSync(join(bin, "jobtable"), 0o755);
  const store = `sqlite:${join(folder, "jobs.db")}`;
  return {
    PATH: `${bin}:${dirname(process.execPath)}:${process.env["PATH"] ?? ""}`,
    HOME: folder,
    TMPDIR: folder,
    JOBTABLE_STORE: store,
    JOBTABLE_PORT: "0",
  };
}

test("the commands and files of docs/plans.md, in the example's workspace", async () => {
  const text = page("docs/plans.md");
  const folder = scratch();
  const env = environment(folder);
  const moved = (command: string): string =>
    command.replaceAll("/tmp/jobtable-plans", join(folder, "plans"));
  const cwd = join(folder, "plans/codemod");
  const sh = (command: string, from: string): string => {
    const done = spawnSync("sh", ["-e", "-c", moved(command)], {
      cwd: from,
      env,
      encoding: "utf8",
      ...BOUNDED,
    });
    expect(done.status, `${command}\n${done.stdout}${done.stderr}`).toBe(0);
    return done.stdout;
  };
  const [use, prepare, ...blocks] = shellBlocks(text);
  sh(prepare ?? "", PROJECT);
  const files = fileBlocks(text);
  expect(files.map(([name]) => name)).toEqual(["rename.yaml", "tasks/count.ts", "lines.yaml"]);
  mkdirSync(join(cwd, "tasks"));
  mkdirSync(join(cwd, "node_modules"));
  symlinkSync(PROJECT, join(cwd, "node_modules/jobtable"));
  for (const [name, content] of files) writeFileSync(join(cwd, name), content);

  const said: string[] = [];
  for (const block of [use ?? "", ...blocks]) {
    // What one block has applied is no trouble of the next.
    sh("git checkout --quiet src", cwd);
    const [, serving] = /^jobtable ((?:worker|serve).*)\n$/.exec(block) ?? [];
    if (serving === undefined) said.push(sh(block, cwd));
    else await new Process(serving.split(" "), { cwd, env }).says(/ready$|listening on/m);
  }
  expect(said).toHaveLength(6);
  const [intro = "", , , followed = "", looked = "", applied = ""] = said;
  expect(intro).toContain("2 files changed, +3 -3");
  expect(followed).toContain("src/stock.js: 2 calls");
  expect(looked).toMatch(/count-lines[\s\S]*rename-warning[\s\S]*diff --git/);
  expect(readFileSync(join(cwd, "rename.patch"), "utf8")).toMatch(/^diff --git/);
  expect(applied).toMatch(/^it fits\n[\s\S]*# pass 1/);
});

test("the commands of examples/plans/README.md, one after the other", () => {
  const folder = scratch();
  const env = environment(folder);
  const script = shellBlocks(page("examples/plans/README.md"))
    .join("")
    .replaceAll("/tmp/jobtable-plans", join(folder, "plans"))
    // In another terminal.
    .replace(/^(JOBTABLE_STORE=.* worker .*)$/m, "$1 & worker=$!; trap 'kill $worker' EXIT");
  expect(script).toContain("trap");
  const { status, stdout, stderr } = spawnSync("sh", ["-e", "-c", script], {
    cwd: PROJECT,
    env,
    encoding: "utf8",
    ...BOUNDED,
  });
  expect(status, stdout + stderr).toBe(0);
  expect(stdout).toContain("# pass 1");
  const text = readFileSync(join(folder, "plans/ocr/scans/page.txt"), "utf8");
  // Printed by cat after the apply in place, and there again after the one in the worker.
  expect(text.length).toBeGreaterThan(20);
  expect(stdout).toContain(text);
  expect(stdout).toMatch(/^apply: +done$/m);
});
