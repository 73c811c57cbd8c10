/**
 * Puts the settings together: flag > environment > config file > default, into one frozen `Config`,
 * and remembers where each came from. The only reader of the environment.
 *
 * Whatever is wrong (a bad value, a name that nothing knows) is a `JobtableError` with the code
 * `invalid_config` whose one line names the setting, its origin, the value and what was expected.
 * An empty environment variable counts as not set.
 */
import type { ConfigFile } from "./config/file.js";
import { nearest } from "./job/nearest.js";
import {
  flagOf,
  SETTING_NAMES,
  SETTINGS,
  settingRow,
  type Config,
  type SettingName,
} from "./config/settings.js";
import { maskValue, readValue, type SettingValue } from "./config/values.js";
import { JobtableError } from "./job/errors.js";

export type Origin =
  | { readonly kind: "flag"; readonly flag: string }
  | { readonly kind: "environment"; readonly variable: string }
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "default" };

export interface Setting {
  readonly name: SettingName;
  readonly value: SettingValue;
  readonly origin: Origin;
}

export interface Settings {
  readonly config: Config;
  /** In the table's order. */
  readonly settings: readonly Setting[];
}

export interface Sources {
  /** By setting name, as the command line gave them. */
  readonly flags: Readonly<Partial<Record<SettingName, string>>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly file: ConfigFile | null;
}

/** The environment of this process. */
export function processEnvironment(): Sources["env"] {
  return process.env;
}

/** @throws JobtableError `invalid_config` */
export function resolveSettings(sources: Sources): Settings {
  refuseUnknownKeys(sources.file);
  refuseUnknownVariables(sources.env);
  const settings: Setting[] = [];
  const store = settingOf("store", sources, "sql");
  const kind = store.value === "memory" ? "memory" : "sql";
  for (const name of SETTING_NAMES)
    settings.push(name === "store" ? store : settingOf(name, sources, kind));
  // The table's types make this the shape of a Config: one key per row, its value read by the row's kind.
  const config = Object.fromEntries(
    settings.map(({ name, value }) => [settingRow(name).key, value]),
  ) as Config;
  return { config: Object.freeze(config), settings };
}

function settingOf(name: SettingName, sources: Sources, store: "memory" | "sql"): Setting {
  const given = find(name, sources);
  const row = settingRow(name);
  if (given === undefined) {
    const inMemory = store === "memory" && row.kind === "integer" ? row.defaultInMemory : undefined;
    const reading = readValue(row, inMemory ?? row.default);
    // A default of null (none) is the one value that can't be read from text.
    const value = reading.kind === "read" ? reading.value : null;
    return { name, value, origin: { kind: "default" } };
  }
  const reading = readValue(row, given.raw);
  if (reading.kind === "read") return { name, value: reading.value, origin: given.origin };
  const value = typeof given.raw === "string" ? String(maskValue(row, given.raw)) : given.raw;
  throw new JobtableError(
    "invalid_config",
    `setting ${name} (${describeOrigin(given.origin)}): ${JSON.stringify(value)} is not ${reading.expected}`,
  );
}

function find(
  name: SettingName,
  { flags, env, file }: Sources,
): { readonly raw: unknown; readonly origin: Origin } | undefined {
  const flag = flags[name];
  if (flag !== undefined) return { raw: flag, origin: { kind: "flag", flag: flagOf(name) } };
  for (const variable of settingRow(name).env) {
    const raw = env[variable];
    if (raw !== undefined && raw !== "" && !isServiceLink(variable, raw))
      return { raw, origin: { kind: "environment", variable } };
  }
  if (file !== null && Object.hasOwn(file.values, name))
    return { raw: file.values[name], origin: { kind: "file", path: file.path } };
  return undefined;
}

function refuseUnknownKeys(file: ConfigFile | null): void {
  for (const key of Object.keys(file?.values ?? {}))
    if (!Object.hasOwn(SETTINGS, key))
      throw unknownName(
        `config file ${file?.path ?? ""}: unknown setting ${key}`,
        key,
        SETTING_NAMES,
      );
}

const OWN_PREFIX = "JOBTABLE_";
/**
 * Names of ours that are no settings: those of the tests, and what Kubernetes sets in every pod for
 * a service that is called "jobtable" (JOBTABLE_SERVICE_HOST, JOBTABLE_PORT_8202_TCP, ...).
 */
const NOT_SETTINGS = /^JOBTABLE_(TEST_.*|REPO|SERVICE_(HOST|PORT.*)|PORT_\d+_.*)$/;

/** The one such variable that is also a setting's: `JOBTABLE_PORT=tcp://10.96.3.4:8202`. */
function isServiceLink(variable: string, raw: string): boolean {
  return variable === `${OWN_PREFIX}PORT` && /^(tcp|udp|sctp):\/\//.test(raw);
}

function refuseUnknownVariables(env: Sources["env"]): void {
  const known: string[] = SETTING_NAMES.flatMap((name) => settingRow(name).env);
  for (const [variable, value] of Object.entries(env))
    if (
      variable.startsWith(OWN_PREFIX) &&
      value !== undefined &&
      !known.includes(variable) &&
      !NOT_SETTINGS.test(variable)
    )
      throw unknownName(`environment: unknown variable ${variable}`, variable, known);
}

function unknownName(problem: string, name: string, known: readonly string[]): JobtableError {
  const near = nearest(name, known);
  const hint = near === undefined ? "jobtable config lists all" : `did you mean ${near}?`;
  return new JobtableError("invalid_config", `${problem}; ${hint}`);
}

/** `--port`, `JOBTABLE_PORT`, `jobtable.config.json` or `default`. */
export function describeOrigin(origin: Origin): string {
  switch (origin.kind) {
    case "flag":
      return origin.flag;
    case "environment":
      return origin.variable;
    case "file":
      return origin.path;
    case "default":
      return "default";
    default:
      return origin satisfies never;
  }
}
