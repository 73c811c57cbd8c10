import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { resolveSettings, type Settings } from "../config.js";
import { JobtableError } from "../job/errors.js";
import { importTaskFile } from "../task/import-file.js";
import { defineConfig } from "./define-config.js";
import { CONFIG_FILES, readConfigFile, type ConfigFile } from "./file.js";

let folder = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "jobtable-config-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
});

const put = (name: string, text: string): void => writeFileSync(join(folder, name), text);
const read = (named?: string): Promise<ConfigFile | null> =>
  readConfigFile(named, folder, (path) => importTaskFile(path, "export default {}"));
const resolve = async (named?: string): Promise<Settings> =>
  resolveSettings({ flags: {}, env: {}, file: await read(named) });

/** The one line of the refusal, without the folder's own name. */
async function refusal(named?: string): Promise<string> {
  try {
    await resolve(named);
  } catch (error) {
    if (error instanceof JobtableError && error.code === "invalid_config") {
      expect(error.message).not.toContain("\n");
      return error.message.replaceAll(`${folder}/`, "");
    }
    throw error;
  }
  throw new Error("nothing was refused");
}

/** The same settings in every format. */
const TEXTS: Readonly<Record<string, string>> = {
  ".ts": 'const ttl: string = "7d";\nexport default { max_workers: 8, async_job_ttl: ttl };\n',
  ".js": 'module.exports = { max_workers: 8, async_job_ttl: "7d" };\n',
  ".mjs": 'export default { max_workers: 8, async_job_ttl: "7d" };\n',
  ".json": '\uFEFF{ "max_workers": 8, "async_job_ttl": "7d" }\n',
  ".toml": 'max_workers = 8 # slots\nasync_job_ttl = "7d"\n',
  ".yaml": "# slots\nmax_workers: 8\nasync_job_ttl: 7d\n",
  ".yml": "{ max_workers: 8, async_job_ttl: 7d }\n",
};

test("every format that is looked for is tried here", () => {
  expect(CONFIG_FILES).toEqual(Object.keys(TEXTS).map((end) => `jobtable.config${end}`));
});

test.each(CONFIG_FILES)("%s in the current folder is found and read", async (name) => {
  expect(await read()).toBeNull();
  put(name, TEXTS[name.replace("jobtable.config", "")] ?? "");
  const { config, settings } = await resolve();
  expect(config).toMatchObject({ maxWorkers: 8, asyncJobTtlMs: 7 * 86_400_000 });
  expect(settings.find((setting) => setting.name === "max_workers")?.origin).toEqual({
    kind: "file",
    path: name,
  });
});

test("a file that is named is read instead", async () => {
  put("jobtable.config.json", '{"port": 1}');
  put("other.json", '{"port": 2}');
  expect(await read("other.json")).toEqual({ path: "other.json", values: { port: 2 } });
});

test("of two in one folder none is guessed, and both are named", async () => {
  put("jobtable.config.toml", "port = 1");
  put("jobtable.config.json", '{"port": 1}');
  expect(await refusal()).toBe(
    "two config files: jobtable.config.json and jobtable.config.toml; keep one of them, or name it with --config",
  );
  expect((await read("jobtable.config.toml"))?.values).toEqual({ port: 1 });
});

test.each(["e.json", "e.toml", "e.yaml"])("an empty %s sets nothing", async (name) => {
  put(name, "\n");
  expect((await read(name))?.values).toEqual({});
});

describe("refused in one line that says where", () => {
  test.each([
    ["missing.json", null, "config file missing.json: there is no such file"],
    ["list.json", "[]", "config file list.json: it must hold one object of settings"],
    ["text.yaml", "port\n", "config file text.yaml: it must hold one object of settings"],
    [
      "x.ini",
      "",
      "config file x.ini: its name must end in .ts, .js, .mjs, .json, .toml, .yaml, .yml",
    ],
    ["a.json", "{", "config file a.json:1:2: Expected property name or '}'"],
    ["b.json", '{\n "port": 1,\n}', "config file b.json:3:1: Expected double-quoted property name"],
    ["a.toml", "port = 1\nhost = ", "config file a.toml:2:8: invalid value"],
    [
      "b.toml",
      "port = 1\nport = 2",
      "config file b.toml:2:1: trying to redefine an already defined table or value",
    ],
    ["a.yaml", "port: 1\nport: 2\n", "config file a.yaml:2:1: Map keys must be unique"],
    ["b.yaml", "port: !x 1\n", "config file b.yaml:1:7: Unresolved tag: !x"],
    [
      "a.mjs",
      "export const x = 1;",
      "config file a.mjs: it has no default export; write: export default {}",
    ],
    ["a.ts", "export default {,}", /^config file a\.ts: SyntaxError: .* \(at a\.ts:1:\d+\)$/],
    ["b.ts", "export default { port: y };", /^config file b\.ts: ReferenceError: y is not defined/],
    [
      "c.toml",
      'port = "x"',
      /^setting port \(c\.toml\): "x" is not a whole number from 0 to 65535$/,
    ],
    [
      "d.yaml",
      "max_worker: 1",
      /^config file d\.yaml: unknown setting max_worker; did you mean max_workers\?$/,
    ],
    [
      "e.toml",
      "host = 2026-01-01",
      /^setting host \(e\.toml\): "2026-01-01" is not one line of text$/,
    ],
  ])("%s", async (name, text, message) => {
    if (text !== null) put(name, text);
    const said = await refusal(name);
    if (typeof message === "string") expect(said).toBe(message);
    else expect(said).toMatch(message);
  });
});

test("defineConfig gives the object its types and nothing else", () => {
  const settings = { max_workers: 8, async_job_ttl: "7d", async_enabled: false } as const;
  expect(defineConfig(settings)).toBe(settings);
  // @ts-expect-error -- the type knows no such setting
  defineConfig({ max_worker: 8 });
  // @ts-expect-error -- nor such a value
  defineConfig({ log_level: "loud" });
});
