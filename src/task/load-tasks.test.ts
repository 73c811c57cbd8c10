import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { JobtableError } from "../job/errors.js";
import type { TaskContext } from "./task.js";
import { loadTasks, type LoadOptions } from "./load-tasks.js";

const fixtures = resolve(import.meta.dirname, "../../test/fixtures/tasks");
let root = "";
let folders = 0;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "jobtable-load-"));
});
afterAll(async () => {
  await rm(root, { recursive: true, force: true });
});

/** A new folder with these files. */
async function folder(files: Readonly<Record<string, string>>): Promise<string> {
  folders += 1;
  const path = join(root, String(folders));
  await mkdir(path);
  for (const [name, text] of Object.entries(files)) await writeFile(join(path, name), text);
  return path;
}

async function refusal(paths: readonly string[], options?: LoadOptions): Promise<string> {
  try {
    await loadTasks(paths, options);
  } catch (error) {
    if (!(error instanceof JobtableError) || error.code !== "invalid_task") throw error;
    expect(error.message).not.toContain("\n");
    return error.message;
  }
  return "accepted";
}

/** The refusal of one file, with the folder's path left out. */
async function refusalOf(name: string, text: string, options?: LoadOptions): Promise<string> {
  const path = await folder({ [name]: text });
  return (await refusal([join(path, name)], options)).replaceAll(`${path}/`, "");
}

const named = (name: string): string => `export default { name: "${name}", run: () => 1 };\n`;

describe("loadTasks", () => {
  it("loads a folder's task files in order of name, and nothing else", async () => {
    const path = await folder({
      "b.mjs": named("second"),
      "a.ts": "const n: number = 1; export default () => n;",
      "c.cjs": "module.exports = async () => 1;",
      "d.js": named("fourth"),
      "e.mts": "export default { run: (x: unknown) => x };",
      "_part.ts": "throw new Error('not a task')",
      ".hidden.js": "throw new Error('not a task')",
      "a.test.ts": "throw new Error('not a task')",
      "types.d.ts": "throw new Error('not a task')",
      "view.tsx": "throw new Error('not a task')",
      "README.md": "no",
    });
    await mkdir(join(path, "below.ts"));
    const tasks = await loadTasks([path]);
    expect(tasks.map(({ name }) => name)).toEqual(["a", "second", "c", "fourth", "e"]);
    expect(tasks.map(({ file }) => file?.slice(path.length))).toEqual([
      "/a.ts",
      "/b.mjs",
      "/c.cjs",
      "/d.js",
      "/e.mts",
    ]);
  });

  it("takes files and folders together, each file once, relative paths too", async () => {
    const path = await folder({ "a.mjs": named("a"), "b.mjs": named("b") });
    await symlink(join(path, "b.mjs"), join(path, "z.mjs"));
    const relative = join("test/fixtures/tasks", "plain.js");
    expect(await refusal([join(path, "b.mjs"), path])).toContain('two tasks are named "b"');
    await rm(join(path, "z.mjs"));
    const tasks = await loadTasks([join(path, "b.mjs"), path, relative]);
    expect(tasks.map(({ name }) => name)).toEqual(["b", "a", "plain"]);
    expect(await loadTasks([])).toEqual([]);
  });

  it("loads TypeScript that imports the package, a schema library and a module beside it", async () => {
    const [typed] = await loadTasks([join(fixtures, "typed.ts")]);
    expect(typed).toMatchObject({
      name: "typed",
      description: "Repeats a word",
      isolation: "thread",
      timeoutMs: 30_000,
      maxAttempts: 3,
      file: join(fixtures, "typed.ts"),
    });
  });

  it("gives files the package by its name where no node_modules has it", async () => {
    const wrapped = 'task({ run: () => new Retry("x") })';
    const imported = `import { task, Retry } from "jobtable"; export default ${wrapped};`;
    const required = `const { task, Retry } = require("jobtable"); module.exports = ${wrapped};`;
    const path = await folder({
      "ts.ts": imported,
      "mts.mts": imported,
      "mjs.mjs": imported,
      "js.js": imported,
      "cjs.cjs": required,
      "nested.mjs": 'export { default } from "./_inner.mjs";',
      "_inner.mjs": imported.replace("run:", 'name: "inner", run:'),
      "top.ts": 'const { task } = await import("jobtable"); export default task({ run: () => 1 });',
    });
    const tasks = await loadTasks([path]);
    const names = tasks.map(({ name }) => name);
    expect(names).toEqual(["cjs", "js", "mjs", "mts", "inner", "top", "ts"]);
    for (const { definition } of tasks.filter(({ name }) => name !== "top"))
      expect(definition.run(null, JSON.parse("{}") as TaskContext)).toMatchObject({
        name: "Retry",
      });
  });

  it("unwraps a default export that was compiled to CommonJS", async () => {
    const path = await folder({
      "a.cjs": "exports.__esModule = true; exports.default = { run: () => 1 };",
    });
    expect(await loadTasks([path])).toMatchObject([{ name: "a" }]);
  });
});

describe("one clear line for", () => {
  it("a missing path, an empty folder, a file of another kind, two of one name", async () => {
    expect(await refusal(["/nowhere/ocr.ts"])).toBe("/nowhere/ocr.ts: no such file or folder");
    const empty = await folder({ "README.md": "no" });
    expect(await refusal([empty])).toBe(
      `${empty}: no task files in it; expected .ts, .mts, .js, .mjs, .cjs`,
    );
    const other = join(empty, "README.md");
    expect(await refusal([other])).toBe(
      `${other}: not a task file; expected .ts, .mts, .js, .mjs, .cjs`,
    );
    const two = await folder({ "a.mjs": named("ocr"), "b.mjs": named("ocr") });
    expect(await refusal([two])).toBe(
      `two tasks are named "ocr": ${two}/a.mjs and ${two}/b.mjs; give one of them another name`,
    );
  });

  it.each([
    ["no default export", "a.mjs", "export const run = 1;", "a.mjs: it has no default export"],
    [
      "a default export that is no task",
      "a.mjs",
      "export default 5;",
      "a.mjs: the default export must be",
    ],
    [
      "a bad option",
      "a.ts",
      "export default { timeout: 'soon', run() {} };",
      'task "a" (a.ts): option timeout: expected',
    ],
    [
      "a file's name",
      "a b.mjs",
      "export default () => 1;",
      `a b.mjs: "a b" can't be a task's name`,
    ],
    [
      "a syntax error",
      "a.mjs",
      "const a = 1;\nconst = 2;",
      "a.mjs: SyntaxError: Unexpected token '=' (at a.mjs:2:7)",
    ],
    [
      "a syntax error in TypeScript",
      "a.ts",
      "const a: number = 1;\nconst = 2;",
      "a.ts: SyntaxError: Unexpected token (at a.ts:2:",
    ],
    [
      "a throw",
      "a.mjs",
      "\n\nthrow new TypeError('bad\\nsecond line');",
      "a.mjs: TypeError: bad (at a.mjs:3:7)",
    ],
    [
      "a throw in TypeScript",
      "a.ts",
      "\n\nthrow new TypeError('bad');",
      "a.ts: TypeError: bad (at a.ts:3:7)",
    ],
    ["a thrown null", "a.mjs", "throw null;", "a.mjs: Error: null"],
    ["a missing module", "a.mjs", 'import "./none.mjs";', "a.mjs: Error: Cannot find module"],
    [
      "a missing package",
      "a.ts",
      'import "no-such-package-here";',
      "a.ts: Error: Cannot find module 'no-such-package-here'",
    ],
    [
      "a missing export",
      "a.mjs",
      'import { none } from "node:fs";',
      "a.mjs: SyntaxError: The requested module 'node:fs' does not provide an export named 'none'",
    ],
  ])("%s", async (_, name, text, line) => {
    expect(await refusalOf(name, text)).toContain(line);
  });
});

describe("a file that would take the process with it", () => {
  it.each([
    ["exits", "process.exit(3)", "it ends its thread while it loads"],
    [
      "throws from a timer",
      "setImmediate(() => { throw new Error('late') }); await new Promise((r) => setTimeout(r, 5_000))",
      "it throws outside its import: Error: late",
    ],
    [
      "leaves a rejection",
      "Promise.reject(new Error('lost')); await new Promise((r) => setTimeout(r, 5_000))",
      "it throws outside its import: Error: lost",
    ],
  ])("%s", async (_, code, line) => {
    expect(await refusalOf("a.mjs", `${code};\n${named("a")}`)).toBe(`a.mjs: ${line}`);
  });

  it.each([
    ["spins", "for (;;);"],
    ["never finishes", "await new Promise(() => undefined);"],
  ])("%s", async (_, code) => {
    const line = await refusalOf("a.mjs", `${code}\n${named("a")}`, { importTimeoutMs: 1_000 });
    expect(line).toBe("a.mjs: still loading after 1000 ms; do slow work in run, not at import");
  });
});
