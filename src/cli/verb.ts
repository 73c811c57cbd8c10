/**
 * What all commands have in common: how they are declared, an example in their help, `--json`, the
 * flags of the settings they use, and the exit code they answer with.
 */
import type { Command } from "commander";
import type { Config, SettingName } from "../config/settings.js";
import type { Settings } from "../config.js";
import type { ExitCode } from "./exit-code.js";
import { addSettingFlags, settingsFrom } from "./setting-flags.js";
import type { Terminal } from "./terminal.js";

/** What the process gives to a command. */
export interface Cli {
  readonly terminal: Terminal;
  /** Ends the process at once; for the second signal. */
  readonly exit: (code: number) => void;
}

export interface Invocation extends Cli {
  /** The arguments that are no flags, in order. */
  readonly args: readonly string[];
  /** The command's own flags, by their names in camelCase. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly json: boolean;
  readonly config: Config;
  readonly settings: Settings["settings"];
}

export interface Verb {
  /** As commander writes it: `show <id>`. */
  readonly usage: string;
  readonly summary: string;
  /** One line that works, without the prompt. */
  readonly example: string;
  readonly settings: readonly SettingName[];
  readonly run: (invocation: Invocation) => Promise<ExitCode>;
}

/** How commands reach the process and hand back their exit codes. */
export interface Runner extends Cli {
  ended(code: ExitCode): void;
}

/** Declares a command; flags of its own are added to what is returned. */
export function addVerb(parent: Command, runner: Runner, verb: Verb): Command {
  const command = parent.command(verb.usage).summary(verb.summary).description(`${verb.summary}.`);
  command.option("--json", "print JSON");
  addSettingFlags(command, verb.settings);
  command.addHelpText("after", `\nExample:\n  $ ${verb.example}`);
  command.action(async () => {
    const options: Record<string, unknown> = command.opts();
    const { terminal, exit } = runner;
    const { config, settings } = await settingsFrom(options);
    const json = options["json"] === true;
    runner.ended(
      await verb.run({ terminal, exit, args: command.args, options, json, config, settings }),
    );
  });
  return command;
}

/** The text of one of the command's own flags, or undefined where it was not given. */
export function textOption({ options }: Invocation, name: string): string | undefined {
  const value = options[name];
  return typeof value === "string" ? value : undefined;
}
