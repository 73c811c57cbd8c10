/** What can be completed, read off the program itself: its commands, their flags, and the flags' values. */
import type { Command, Option } from "commander";

export interface Completions {
  readonly program: string;
  /** Each command by its words after the program's name, joined by a blank; the program itself is "". */
  readonly places: readonly Place[];
  /** Flags that take a value, over all commands; the word after one is no command. */
  readonly valued: readonly string[];
  /** Flags whose values can be told, each spelling once. */
  readonly choices: readonly Pick<Flag, "names" | "values">[];
}

export interface Place {
  readonly path: string;
  /** Commands, or what an argument may be; none: files. */
  readonly words: readonly Word[];
  readonly flags: readonly Flag[];
}

export interface Word {
  readonly text: string;
  readonly summary: string;
}

export interface Flag {
  /** `-i` and `--input`. */
  readonly names: readonly string[];
  readonly summary: string;
  readonly takesValue: boolean;
  /** The values it takes, where they can be told; else files are offered. */
  readonly values: readonly string[];
}

export function completionsOf(program: Command): Completions {
  const places = placesBelow(program, "");
  const flags = places.flatMap((place) => place.flags).filter(({ takesValue }) => takesValue);
  const told = flags.filter(({ values }) => values.length > 0);
  return {
    program: program.name(),
    places,
    valued: [...new Set(flags.flatMap(({ names }) => names))],
    choices: [...new Map(told.map((flag) => [flag.names.join(" "), flag])).values()],
  };
}

function placesBelow(command: Command, path: string): Place[] {
  const help = command.createHelp();
  const commands = help.visibleCommands(command).filter((child) => child.name() !== "help");
  return [
    {
      path,
      words: [
        ...commands.map((child) => ({
          text: child.name(),
          summary: help.subcommandDescription(child),
        })),
        ...command.registeredArguments
          .flatMap(({ argChoices = [] }) => argChoices)
          .map((text) => ({ text, summary: "" })),
      ],
      flags: help.visibleOptions(command).map(flagFrom),
    },
    ...commands.flatMap((child) => placesBelow(child, `${path} ${child.name()}`.trimStart())),
  ];
}

function flagFrom(option: Option): Flag {
  return {
    names: [option.short, option.long].filter((name) => name !== undefined),
    summary: option.description,
    takesValue: option.required || option.optional,
    values: option.argChoices ?? [],
  };
}
