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

export interface PlainInvocation extends Cli {
  /** The arguments that are no flags, in order. */
  readonly args: readonly string[];
  /** The command's own flags, by their names in camelCase. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly json: boolean;
}

export interface Invocation extends PlainInvocation {
  readonly config: Config;
  readonly settings: Settings["settings"];
}

interface Declared {
  /** As commander writes it: `show <id>`. */
  readonly usage: string;
  readonly summary: string;
  /** One line that works, without the prompt. */
  readonly example: string;
}

export interface PlainVerb extends Declared {
  readonly run: (invocation: PlainInvocation) => Promise<ExitCode>;
}

export interface Verb extends Declared {
  readonly settings: readonly SettingName[];
  readonly run: (invocation: Invocation) => Promise<ExitCode>;
}

/** How commands reach the process and hand back their exit codes. */
export interface Runner extends Cli {
  ended(code: ExitCode): void;
}

/** Declares a command that uses settings; flags of its own are added to what is returned. */
export function addVerb(parent: Command, runner: Runner, verb: Verb): Command {
  const command = addPlainVerb(parent, runner, {
    ...verb,
    async run(invocation) {
      const { config, settings } = await settingsFrom(invocation.options);
      return verb.run({ ...invocation, config, settings });
    },
  });
  addSettingFlags(command, verb.settings);
  return command;
}

/** Declares a command that no setting concerns: a broken config file does not keep it from working. */
export function addPlainVerb(parent: Command, runner: Runner, verb: PlainVerb): Command {
  const command = parent.command(verb.usage).summary(verb.summary).description(`${verb.summary}.`);
  command.option("--json", "print JSON");
  addExample(command, verb.example);
  command.action(async () => {
    const options: Record<string, unknown> = command.opts();
    const { terminal, exit } = runner;
    const json = options["json"] === true;
    runner.ended(await verb.run({ terminal, exit, args: command.args, options, json }));
  });
  return command;
}

/** @param example one line that works, without the prompt. */
export function addExample(command: Command, example: string): void {
  command.addHelpText("after", `\nExample:\n  $ ${example}`);
}

/** The text of one of the command's own flags, or undefined where it was not given. */
export function textOption({ options }: Invocation, name: string): string | undefined {
  const value = options[name];
  return typeof value === "string" ? value : undefined;
}
