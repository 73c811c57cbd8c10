/**
 * The config file: settings by their table names. Looked for in the current folder, or where
 * `--config` points. Unreadable or malformed, or two in one folder: a `JobtableError`
 * (`invalid_config`) of one line that names the file, and the place in it where that is known.
 */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { extname, resolve } from "node:path";
import { JobtableError } from "../job/errors.js";
import { MalformedText, PARSERS } from "./parse.js";

export interface ConfigFile {
  /** As given or found, for messages. */
  readonly path: string;
  readonly values: Readonly<Record<string, unknown>>;
}

/**
 * Imports a file of code and answers its default export.
 * @param file absolute path.
 */
export type ImportFile = (file: string) => Promise<unknown>;

const CODE: readonly string[] = [".ts", ".js", ".mjs"];
const EXTENSIONS: readonly string[] = [...CODE, ...PARSERS.keys()];

/** What is looked for in the current folder; at most one of them may be there. */
export const CONFIG_FILES: readonly string[] = EXTENSIONS.map((end) => `jobtable.config${end}`);

/**
 * @param named what `--config` says; a file named there must exist.
 * @returns null where none is named and none stands in `folder`.
 */
export async function readConfigFile(
  named: string | undefined,
  folder: string,
  importFile: ImportFile,
): Promise<ConfigFile | null> {
  const path = named ?? find(folder);
  if (path === undefined) return null;
  const values = await valuesOf(path, resolve(folder, path), importFile);
  if (typeof values !== "object" || values === null || Array.isArray(values))
    throw invalid(`config file ${path}: it must hold one object of settings`);
  return { path, values: { ...values } };
}

function find(folder: string): string | undefined {
  const [found, another] = CONFIG_FILES.filter((name) => existsSync(resolve(folder, name)));
  if (found !== undefined && another !== undefined)
    throw invalid(
      `two config files: ${found} and ${another}; keep one of them, or name it with --config`,
    );
  return found;
}

async function valuesOf(path: string, file: string, importFile: ImportFile): Promise<unknown> {
  const extension = extname(path);
  const parse = PARSERS.get(extension);
  if (parse === undefined && !CODE.includes(extension))
    throw invalid(`config file ${path}: its name must end in ${EXTENSIONS.join(", ")}`);
  try {
    if (parse === undefined) return await importFile(file);
    // An empty file sets nothing; a mark at the start is no part of the text.
    const text = (await readFile(file, "utf8")).replace(/^\uFEFF/, "");
    return text.trim() === "" ? {} : await parse(text);
  } catch (error) {
    throw invalid(`config file ${path}${reason(error)}`, { cause: error });
  }
}

function reason(error: unknown): string {
  if (error instanceof MalformedText && error.place !== null)
    return `:${error.place.line}:${error.place.column}: ${error.message}`;
  if (error instanceof Error && "code" in error && error.code === "ENOENT")
    return ": there is no such file";
  return `: ${error instanceof Error ? error.message : String(error)}`;
}

function invalid(detail: string, options?: ErrorOptions): JobtableError {
  return new JobtableError("invalid_config", detail, options);
}
