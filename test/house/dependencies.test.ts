/**
 * Holds the direction of imports (.dependency-cruiser.mjs) on the code as it is, and proves on
 * small made-up trees that each rule bites.
 */
import { cruise, type ICruiseResult } from "dependency-cruiser";
import extractConfig from "dependency-cruiser/config-utl/extract-depcruise-config";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { afterEach, describe, expect, test } from "vitest";

const root = resolve(import.meta.dirname, "../..");
const config = await extractConfig(join(root, ".dependency-cruiser.mjs"));
const made: string[] = [];

afterEach(() => {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true });
});

/** Lays out the files in a folder of their own, with this project's packages at hand. */
function tree(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), "jobtable-house-"));
  made.push(folder);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  symlinkSync(join(root, "package.json"), join(folder, "package.json"));
  return folder;
}

async function violations(baseDir: string, parts: string[]): Promise<string[]> {
  const { output } = await cruise(parts, {
    ...config.options,
    ruleSet: { forbidden: config.forbidden ?? [] },
    validate: true,
    baseDir,
    outputType: "json",
  });
  const { summary } = (typeof output === "string" ? JSON.parse(output) : output) as ICruiseResult;
  return summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} -> ${to}`).sort();
}

/** One file that imports one other, which exists. */
const pair = (from: string, specifier: string, to: string): Record<string, string> => ({
  [from]: `import { b } from "${specifier}";\nexport const a = b;\n`,
  [to]: "export const b = 1;\n",
});

/** Hundreds of files are parsed, which a busy machine takes long for. */
const WHOLE_TREE_MS = 120_000;

test(
  "the code keeps to the rules",
  async () => {
    expect(await violations(root, ["src", "test"])).toEqual([]);
  },
  WHOLE_TREE_MS,
);

describe("against the stream", () => {
  test.each([
    ["job", "src/job/a.ts", "../runtime/b.js", "src/runtime/b.ts"],
    ["runtime", "src/runtime/a.ts", "../engine/b.js", "src/engine/b.ts"],
    ["task", "src/task/a.ts", "../engine/b.js", "src/engine/b.ts"],
    ["contract", "src/ledger/a.ts", "../engine/b.js", "src/engine/b.ts"],
    ["contract", "src/ledger/a.ts", "./sqlite/b.js", "src/ledger/sqlite/b.ts"],
    ["sql-ledgers", "src/ledger/sql/a.ts", "../sqlite/b.js", "src/ledger/sqlite/b.ts"],
    ["memory-ledger", "src/ledger/memory/a.ts", "../sql/b.js", "src/ledger/sql/b.ts"],
    ["memory-ledger", "src/ledger/memory/a.ts", "../sqlite/b.js", "src/ledger/sqlite/b.ts"],
    ["sqlite-ledger", "src/ledger/sqlite/a.ts", "../../engine/b.js", "src/engine/b.ts"],
    ["postgres-ledger", "src/ledger/postgres/a.ts", "../../task/b.js", "src/task/b.ts"],
    ["config", "src/config.ts", "./engine/b.js", "src/engine/b.ts"],
    ["engine", "src/engine/a.ts", "../ledger/sqlite/b.js", "src/ledger/sqlite/b.ts"],
    ["engine", "src/engine/a.ts", "../http/b.js", "src/http/b.ts"],
    ["engine", "src/engine/a.ts", "../config.js", "src/config.ts"],
    ["http", "src/http/a.ts", "../ledger/memory/b.js", "src/ledger/memory/b.ts"],
    ["http", "src/http/a.ts", "../cli/b.js", "src/cli/b.ts"],
    ["plan", "src/plan/a.ts", "../cli/b.js", "src/cli/b.ts"],
    ["plan-parts", "src/plan/steps/a.ts", "../../engine/b.js", "src/engine/b.ts"],
    ["client", "src/client/a.ts", "../engine/b.js", "src/engine/b.ts"],
    ["compose", "src/compose.ts", "./http/b.js", "src/http/b.ts"],
    ["jobtable", "src/jobtable.ts", "./http/b.js", "src/http/b.ts"],
    ["index", "src/index.ts", "./cli/b.js", "src/cli/b.ts"],
    ["cli", "src/cli/a.ts", "../ledger/sqlite/b.js", "src/ledger/sqlite/b.ts"],
    ["cli", "src/cli/a.ts", "../../dashboard/b.js", "dashboard/b.ts"],
  ])("%s: %s may not import %s", async (layer, from, specifier, to) => {
    const found = await violations(tree(pair(from, specifier, to)), ["."]);
    expect(found).toContain(`imports-of-${layer}: ${from} -> ${to}`);
  });

  test("a type counts as an import", async () => {
    const folder = tree({
      "src/job/a.ts": 'import type { B } from "../engine/b.js";\nexport type A = B;\n',
      "src/engine/b.ts": "export type B = 1;\n",
    });
    expect(await violations(folder, ["src"])).toEqual([
      "imports-of-job: src/job/a.ts -> src/engine/b.ts",
    ]);
  });

  test("only compose.ts imports stores", async () => {
    const folder = tree(pair("src/compose.ts", "./ledger/sqlite/b.js", "src/ledger/sqlite/b.ts"));
    expect(await violations(folder, ["src"])).toEqual([]);
  });
});

test("a part without a place in the layout can't be imported", async () => {
  const folder = tree(pair("src/cli/a.ts", "../misc/b.js", "src/misc/b.ts"));
  expect(await violations(folder, ["src"])).toContain(
    "no-place-in-the-layout: src/cli/a.ts -> src/misc/b.ts",
  );
});

test("no circles", async () => {
  const folder = tree({
    "src/job/a.ts": 'import { b } from "./b.js";\nexport const a = (): unknown => b;\n',
    "src/job/b.ts": 'import { a } from "./a.js";\nexport const b = (): unknown => a;\n',
  });
  expect(await violations(folder, ["src"])).toContain("no-circles: src/job/a.ts -> src/job/b.ts");
});

test("no orphans, and no file that only its test reaches", async () => {
  const folder = tree({
    "src/index.ts": "export const a = 1;\n",
    "src/job/lonely.ts": "export const b = 1;\n",
    "src/job/tested.ts": "export const c = 1;\n",
    "src/job/tested.test.ts": 'import { c } from "./tested.js";\nexport const d = c;\n',
  });
  expect(await violations(folder, ["src"])).toEqual([
    "no-orphans: src/job/lonely.ts -> src/job/lonely.ts",
    "no-orphans: src/job/tested.ts -> src/job/tested.ts",
  ]);
});

test("no development packages, unknown packages or missing files from src/", async () => {
  const folder = tree({
    "src/job/dev.ts": 'import { z } from "zod";\nexport const a = z;\n',
    "src/job/transitive.ts": 'import ms from "ms";\nexport const a = ms;\n',
    "src/job/missing.ts": 'import { b } from "./nowhere.js";\nexport const a = b;\n',
    "src/job/fine.ts":
      'import { monotonicFactory } from "ulid";\nexport const a = monotonicFactory;\n',
  });
  const found = await violations(folder, ["src"]);
  expect(found.map((line) => line.split(" -> ")[0])).toEqual([
    "no-dev-dependencies: src/job/dev.ts",
    "no-missing-files: src/job/missing.ts",
    "no-unknown-packages: src/job/transitive.ts",
  ]);
});

test("no tests from src/, and no server code in the dashboard", async () => {
  const folder = tree({
    ...pair("src/job/a.ts", "../../test/b.js", "test/b.ts"),
    "src/job/c.ts": "export const c = 1;\n",
    "dashboard/d.ts": 'import { c } from "../src/job/c.js";\nexport const d = c;\n',
  });
  expect(await violations(folder, ["src", "dashboard"])).toEqual([
    "no-server-code-in-the-dashboard: dashboard/d.ts -> src/job/c.ts",
    "no-tests-in-src: src/job/a.ts -> test/b.ts",
  ]);
});
