/**
 * The config file: settings by their table names. Looked for in the current folder, or where
 * `--config` points. Unreadable or malformed: a `JobtableError` (`invalid_config`) that names it.
 */
import { existsSync, readFileSync } from "node:fs";
import { extname, resolve } from "node:path";
import { JobtableError } from "../job/errors.js";

export interface ConfigFile {
  /** As given or found, for messages. */
  readonly path: string;
  readonly values: Readonly<Record<string, unknown>>;
}

/** What is looked for in the current folder, in this order. */
export const CONFIG_FILES = ["jobtable.config.json"] as const;

/** By the end of the file's name; each parser throws on malformed text. */
const PARSERS = new Map<string, (text: string) => unknown>([
  [".json", (text) => JSON.parse(text) as unknown],
]);

/**
 * @param named what `--config` says; a file named there must exist.
 * @returns null where none is named and none stands in `folder`.
 */
export function readConfigFile(named: string | undefined, folder: string): ConfigFile | null {
  const path = named ?? CONFIG_FILES.find((name) => existsSync(resolve(folder, name)));
  if (path === undefined) return null;
  const parse = PARSERS.get(extname(path));
  if (parse === undefined)
    throw new JobtableError(
      "invalid_config",
      `config file ${path}: its name must end in ${[...PARSERS.keys()].join(" or ")}`,
    );
  let values: unknown;
  try {
    values = parse(readFileSync(resolve(folder, path), "utf8"));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new JobtableError("invalid_config", `config file ${path}: ${why}`, { cause: error });
  }
  if (typeof values !== "object" || values === null || Array.isArray(values))
    throw new JobtableError("invalid_config", `config file ${path}: it must hold one object`);
  return { path, values: { ...values } };
}
