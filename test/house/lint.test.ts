/** Proves on made-up files that each rule of eslint.config.js bites, and where it does not apply. */
import { ESLint } from "eslint";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const root = resolve(import.meta.dirname, "../..");

interface Case {
  readonly file: string;
  readonly code: string;
  /** The rule that must speak up, or null where nothing may. */
  readonly rule: string | null;
}

const bites = (rule: string, file: string, code: string): Case => ({ file, code, rule });
const fine = (file: string, code: string): Case => ({ file, code, rule: null });
const lines = (count: number): string => "export {};\n".padEnd(11 + count - 1, "\n");
const longFunction = (count: number): string =>
  `export function f(): void {\n${"  f();\n".repeat(count - 2)}}\n`;

const CASES: readonly Case[] = [
  bites("no-restricted-properties", "src/engine/a.ts", "export const a = process.env;"),
  bites("no-restricted-properties", "src/engine/b.ts", "export const { env } = process;"),
  bites("no-restricted-imports", "src/engine/c.ts", 'import { env } from "node:process";\nenv;'),
  fine("src/config.ts", "export const a = process.env;"),
  bites("no-restricted-properties", "src/cli/a.ts", "process.exit(1);"),
  bites("no-restricted-properties", "src/config/a.ts", "process.exit(1);"),
  fine("src/cli/main.ts", "process.exit(1);"),
  bites("no-restricted-properties", "src/http/a.ts", "export const a = Date.now();"),
  bites("no-restricted-properties", "src/http/b.ts", "export const a = Math.random();"),
  bites("no-restricted-syntax", "src/http/c.ts", "export const a = new Date();"),
  fine("src/http/d.ts", "export const a = new Date(0).toISOString();"),
  bites("no-restricted-globals", "src/http/e.ts", "setTimeout(() => undefined, 1);"),
  bites("no-restricted-globals", "src/http/f.ts", "setInterval(() => undefined, 1);"),
  bites("no-restricted-globals", "src/http/g.ts", "setImmediate(() => undefined);"),
  bites(
    "no-restricted-imports",
    "src/http/h.ts",
    'import { setTimeout as s } from "node:timers/promises";\nawait s(1);',
  ),
  fine("src/http/i.ts", "queueMicrotask(() => undefined);"),
  fine("src/runtime/a.ts", "setTimeout(() => undefined, Date.now() + Math.random());"),
  bites("no-restricted-properties", "src/runtime/b.ts", "export const a = process.env;"),
  bites("no-restricted-globals", "src/job/waits.test.ts", "setTimeout(() => undefined, 1);"),
  bites("no-restricted-globals", "test/waits.ts", "setTimeout(() => undefined, 1);"),

  bites("no-restricted-syntax", "src/job/a.ts", 'export * from "./b.js";'),
  bites("no-restricted-syntax", "src/job/b.ts", "export enum B { x }"),
  bites("no-restricted-syntax", "src/job/c.ts", "export default 1;"),
  bites("no-restricted-syntax", "src/job/d.ts", "export const a = 1 as unknown as string;"),
  bites("@typescript-eslint/no-explicit-any", "src/job/e.ts", "export let a: any;"),
  bites(
    "@typescript-eslint/no-non-null-assertion",
    "src/job/f.ts",
    "export const f = (a: number | null): number => a!;",
  ),
  bites("@typescript-eslint/ban-ts-comment", "src/job/g.ts", "// @ts-ignore\nexport const a = 1;"),
  bites(
    "@typescript-eslint/ban-ts-comment",
    "src/job/h.ts",
    "// @ts-expect-error\nexport const a: string = 1;",
  ),
  bites(
    "house/explain-disable",
    "src/job/i.ts",
    "// eslint-disable-next-line no-var\nexport var a = 1;",
  ),
  fine("src/job/j.ts", "// eslint-disable-next-line no-var -- as an example\nexport var a = 1;"),

  bites("max-lines", "src/job/long.ts", lines(301)),
  fine("src/job/short.ts", lines(300)),
  bites("max-lines-per-function", "src/job/long-function.ts", longFunction(71)),
  fine("src/job/short-function.ts", longFunction(70)),
  fine("src/job/long.test.ts", longFunction(301)),

  bites("house/file-name", "src/job/utils.ts", "export {};"),
  bites("house/file-name", "src/job/common.ts", "export {};"),
  bites("house/file-name", "src/job/test-helpers.ts", "export {};"),
  bites("house/file-name", "src/job/types.ts", "export {};"),
  bites("house/file-name", "src/job/job-manager.ts", "export {};"),
  bites("house/file-name", "src/job/JobState.ts", "export {};"),
  fine("src/job/job-state.ts", "export {};"),

  bites(
    "@typescript-eslint/no-floating-promises",
    "src/engine/d.ts",
    "const f = async (): Promise<void> => undefined;\nf();",
  ),
  bites(
    "@typescript-eslint/no-misused-promises",
    "src/engine/e.ts",
    "export const f = (run: () => void): void => run();\nf(async () => undefined);",
  ),
  bites(
    "@typescript-eslint/consistent-type-imports",
    "src/engine/f.ts",
    'import { A } from "./g.js";\nexport let a: A;',
  ),
  fine("src/engine/g.ts", "export type A = string;"),
  bites(
    "@typescript-eslint/switch-exhaustiveness-check",
    "src/engine/h.ts",
    "export function f(a: 'x' | 'y'): number {\n  switch (a) {\n    case 'x':\n      return 1;\n  }\n  return 2;\n}",
  ),
  bites("no-console", "src/engine/i.ts", 'console.log("x");'),
];

describe("each rule bites", () => {
  const folder = mkdtempSync(join(tmpdir(), "jobtable-lint-"));
  const heard = new Map<string, string[]>();

  beforeAll(async () => {
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
    copyFileSync(join(root, "tsconfig.json"), join(folder, "tsconfig.json"));
    for (const { file, code } of CASES) {
      mkdirSync(dirname(join(folder, file)), { recursive: true });
      writeFileSync(join(folder, file), code);
    }
    const eslint = new ESLint({ cwd: folder, overrideConfigFile: join(root, "eslint.config.js") });
    for (const { filePath, messages } of await eslint.lintFiles(["src", "test"]))
      heard.set(
        filePath,
        messages.map(({ ruleId, message }) => ruleId ?? message),
      );
  });

  afterAll(() => {
    rmSync(folder, { recursive: true });
  });

  test.each(CASES)("$rule: $file", ({ file, rule }) => {
    const rules = heard.get(join(folder, file));
    if (rule === null) expect(rules).toEqual([]);
    else expect(rules).toContain(rule);
  });
});
