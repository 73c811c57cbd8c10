/**
 * The settings as flags of a command. A boolean one is written `--async-enabled`,
 * `--async-enabled=false` or `--no-async-enabled`.
 */
import { Option, type Command } from "commander";
import { processEnvironment, resolveSettings, type Settings } from "../config.js";
import { readConfigFile } from "../config/file.js";
import {
  flagOf,
  SETTING_NAMES,
  settingRow,
  type SettingName,
  type SettingRow,
} from "../config/settings.js";
import { formatValue, readValue } from "../config/values.js";
import { importTaskFile } from "../task/import-file.js";

const BOOLEAN_FLAGS: ReadonlySet<string> = new Set(
  SETTING_NAMES.filter((name) => settingRow(name).kind === "boolean").map(flagOf),
);
const BOOLEAN_WORD = /^(true|false|on|off|yes|no|1|0)$/i;

/** Gives every boolean flag a value, since commander would take the next argument for it. */
export function spellOutBooleans(args: readonly string[]): string[] {
  const end = args.indexOf("--");
  const spelled: string[] = [];
  for (const [index, arg] of args.entries()) {
    const positive = arg.replace(/^--no-/, "--");
    if ((end >= 0 && index > end) || !BOOLEAN_FLAGS.has(positive)) spelled.push(arg);
    else if (arg !== positive) spelled.push(`${positive}=false`);
    else if (BOOLEAN_WORD.test(args[index + 1] ?? "")) spelled.push(arg);
    else spelled.push(`${arg}=true`);
  }
  return spelled;
}

/** Adds the flags of these settings, and `--config`, under a heading of their own in the help. */
export function addSettingFlags(command: Command, names: readonly SettingName[]): void {
  const heading = "Settings:";
  command.addOption(
    new Option("--config <file>", "the config file (default: jobtable.config.*)").helpGroup(
      heading,
    ),
  );
  // What everyone calls it where there is a server to send it to.
  if (names.includes("server"))
    command.addOption(new Option("--token <value>", "the same as --auth-token").helpGroup(heading));
  for (const name of names) {
    const row = settingRow(name);
    const option = new Option(`${flagOf(name)} <value>`, `${row.meaning} ${hint(name)}`);
    command.addOption(withChoices(option, choicesOf(row)).helpGroup(heading));
  }
}

function choicesOf(row: SettingRow): readonly string[] {
  if (row.kind === "boolean") return ["true", "false"];
  return row.kind === "choice" ? row.choices : [];
}

/** Names the values for the help and for shells; what is given is judged elsewhere, with a better message. */
export function withChoices(option: Option, choices: readonly string[]): Option {
  if (choices.length > 0) option.argChoices = [...choices];
  return option;
}

function hint(name: SettingName): string {
  const row = settingRow(name);
  if (row.default === null) return "(default: none)";
  const reading = readValue(row, row.default);
  return `(default: ${formatValue(row, reading.kind === "read" ? reading.value : row.default)})`;
}

/**
 * The settings in force for a command that was given `options`.
 * @throws JobtableError `invalid_config`
 */
export async function settingsFrom(options: Readonly<Record<string, unknown>>): Promise<Settings> {
  const flags: Partial<Record<SettingName, string>> = {};
  for (const name of SETTING_NAMES) {
    const given = options[new Option(flagOf(name)).attributeName()];
    if (typeof given === "string") flags[name] = given;
  }
  const token = options["token"];
  if (typeof token === "string") flags.auth_token ??= token;
  const named = options["config"];
  const file = await readConfigFile(
    typeof named === "string" ? named : undefined,
    process.cwd(),
    (path) => importTaskFile(path, "export default defineConfig({ ... })"),
  );
  return resolveSettings({ flags, env: processEnvironment(), file });
}
