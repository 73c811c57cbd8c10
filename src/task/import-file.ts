/**
 * Imports one task file, in the process or in a thread. Plain JavaScript is imported by Node itself;
 * TypeScript, and JavaScript that Node can't link by itself, by jiti, which is loaded only then.
 *
 * `import ... from "jobtable"` works in a task file wherever it lies: for jiti the name stands for
 * this very package. A JavaScript file that Node can't resolve it for (no node_modules/jobtable
 * above it, as with a global installation) is therefore loaded by jiti too.
 *
 * A file that does not load rejects with a `TaskLoadError` of one line: what, and at which line.
 */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { extname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Jiti } from "jiti";
import { cleanText } from "../job/limits.js";
import { describe, stackOf } from "./failure.js";

export const TASK_EXTENSIONS: readonly string[] = [".ts", ".mts", ".js", ".mjs", ".cjs"];

const TYPESCRIPT: readonly string[] = [".ts", ".mts"];
const PACKAGE = "jobtable";
const MAX_LINE_CHARS = 500;

/** `detail` is one line without the file's name, unless the fault is in another file. */
export class TaskLoadError extends Error {
  constructor(detail: string, options?: ErrorOptions) {
    super(detail, options);
    this.name = "TaskLoadError";
  }
}

/**
 * @param file absolute path.
 * @param example what a file without a default export should have.
 * @returns its default export.
 * @throws TaskLoadError
 */
export async function importTaskFile(
  file: string,
  example = "export default task({ ... })",
): Promise<unknown> {
  try {
    return defaultExport(await importModule(file), example);
  } catch (error) {
    if (error instanceof TaskLoadError) throw error;
    throw new TaskLoadError(await faultLine(error, file), { cause: error });
  }
}

async function importModule(file: string): Promise<unknown> {
  if (TYPESCRIPT.includes(extname(file))) return (await jiti()).import(file);
  try {
    return (await import(pathToFileURL(file).href)) as unknown;
  } catch (error) {
    if (!needsJiti(error)) throw error;
    return (await jiti()).import(file);
  }
}

/** Whether Node failed for want of this package's name, or of TypeScript, before it ran the file. */
function needsJiti(error: unknown): boolean {
  if (!(error instanceof Error) || !("code" in error)) return false;
  if (error.code === "ERR_UNKNOWN_FILE_EXTENSION") return true;
  return (
    (error.code === "ERR_MODULE_NOT_FOUND" || error.code === "MODULE_NOT_FOUND") &&
    new RegExp(`^Cannot find (package|module) '${PACKAGE}'`).test(error.message)
  );
}

let loading: Promise<Jiti> | undefined;

function jiti(): Promise<Jiti> {
  loading ??= createLoader();
  return loading;
}

async function createLoader(): Promise<Jiti> {
  // By its own name, as any package may: the entry that users import, not a part of this folder.
  const entry = pathToFileURL(createRequire(import.meta.url).resolve(PACKAGE)).href;
  const [{ createJiti }, own] = await Promise.all([
    import("jiti"),
    import(entry) as Promise<unknown>,
  ]);
  return createJiti(import.meta.url, {
    virtualModules: { [PACKAGE]: own },
    // jiti's default is a shared folder in the temporary directory, where others could put code.
    fsCache: cacheFolder(),
  });
}

/** False where the user has no home: then each start compiles anew. jiti does the same where it can't write. */
function cacheFolder(): string | false {
  try {
    return join(homedir(), ".cache", PACKAGE, "tasks");
  } catch {
    return false;
  }
}

function defaultExport(module: unknown, example: string): unknown {
  const exported = property(module, "default");
  if (exported === undefined)
    throw new TaskLoadError(`it has no default export; write: ${example}`);
  // CommonJS that was compiled from ESM, imported by Node: the default export of the default export.
  const inner =
    property(exported, "__esModule") === true ? property(exported, "default") : undefined;
  return inner ?? exported;
}

function property(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null
    ? (Reflect.get(value, key) as unknown)
    : undefined;
}

/** `TypeError: x is not a function (at ocr.ts:3:6)`, as far as it can be known. */
async function faultLine(error: unknown, file: string): Promise<string> {
  const text = describe(error);
  const located = new RegExp(
    `^(?:Error: )?(?:ParseError|SyntaxError): (.*?)\\s+(/.*|[A-Z]:\\\\.*)$`,
    "s",
  );
  const parsed = located.exec(text);
  if (parsed !== null) return oneLine(`SyntaxError: ${parsed[1] ?? ""} (at ${parsed[2] ?? ""})`);
  const place = placeInStack(error, file);
  if (place !== null) return oneLine(`${firstLine(text)} (at ${place})`);
  const line = oneLine(firstLine(text));
  const syntax = error instanceof SyntaxError ? await placeOfSyntaxError(file) : null;
  return syntax === null ? line : `${line} (at ${syntax})`;
}

/** Node keeps the place of a module's syntax error to itself; jiti's parser leaves it in the code that it makes. */
async function placeOfSyntaxError(file: string): Promise<string | null> {
  try {
    const source = await readFile(file, "utf8");
    const code = (await jiti()).transform({ source, filename: file, async: true });
    const [, row, column] = /__JITI_ERROR__ = .*"line":(\d+),"column":(\d+)/.exec(code) ?? [];
    // Its columns count from 0.
    return row === undefined ? null : `${file}:${row}:${String(Number(column) + 1)}`;
  } catch {
    return null;
  }
}

/** The innermost `file:line:column` of a stack that lies in the file itself. */
function placeInStack(error: unknown, file: string): string | null {
  for (const line of (stackOf(error) ?? "").split("\n")) {
    const found = /((?:file:\/\/)?(?:\/|[A-Z]:\\)[^()]*?):(\d+):(\d+)\)?$/.exec(line.trim());
    const [, path, row, column] = found ?? [];
    if (path === undefined || row === undefined || column === undefined) continue;
    if ((path.startsWith("file:") ? fileURLToPath(path) : path) === file)
      return `${file}:${row}:${column}`;
  }
  return null;
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? text;
}

function oneLine(text: string): string {
  return cleanText(text.replaceAll(/\s+/g, " ").trim(), MAX_LINE_CHARS);
}
