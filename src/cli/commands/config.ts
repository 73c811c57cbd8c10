/** `jobtable config`: every setting in force, and where it came from. */
import type { Command } from "commander";
import { describeOrigin } from "../../config.js";
import { SETTING_NAMES, settingRow } from "../../config/settings.js";
import { formatValue, maskValue } from "../../config/values.js";
import { EXIT, type ExitCode } from "../exit-code.js";
import type { Look } from "../look.js";
import { table, type Column } from "../table.js";
import { addVerb, type Invocation, type Runner } from "../verb.js";

export function addConfig(program: Command, runner: Runner): void {
  addVerb(program, runner, {
    usage: "config",
    summary: "Show the settings in force and where each came from",
    example: "jobtable config --max-workers 8",
    settings: SETTING_NAMES,
    run,
  });
}

async function run({ settings, json, terminal }: Invocation): Promise<ExitCode> {
  terminal.print(json ? asJson(settings) : asTable(settings, terminal.look));
  return EXIT.done;
}

/** Durations in ms and sizes in bytes, as the code holds them. */
function asJson(settings: Invocation["settings"]): string {
  const entries = settings.map(({ name, value, origin }) => {
    const row = settingRow(name);
    const unit = row.kind === "duration" ? "ms" : row.kind === "bytes" ? "bytes" : undefined;
    return [name, { value: maskValue(row, value), unit, origin: describeOrigin(origin) }] as const;
  });
  return JSON.stringify(Object.fromEntries(entries), null, 2);
}

const COLUMNS: readonly Column[] = [
  { head: "SETTING", importance: 3 },
  { head: "VALUE", importance: 2, least: 12 },
  { head: "FROM", importance: 1, least: 12 },
];

function asTable(settings: Invocation["settings"], look: Look): string {
  return table(
    COLUMNS,
    settings.map(({ name, value, origin }) => [
      name,
      formatValue(settingRow(name), value),
      describeOrigin(origin),
    ]),
    look,
  );
}
