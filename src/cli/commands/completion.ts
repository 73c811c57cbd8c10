/** `jobtable completion`: what a shell needs to complete the commands, written from the program itself. */
import type { Command } from "commander";
import { bashCompletion } from "../completion/bash.js";
import { fishCompletion } from "../completion/fish.js";
import { completionsOf, type Completions } from "../completion/model.js";
import { zshCompletion } from "../completion/zsh.js";
import { EXIT, misuse } from "../exit-code.js";
import { addPlainVerb, type Runner } from "../verb.js";

const SHELLS: ReadonlyMap<string, (completions: Completions) => string> = new Map([
  ["bash", bashCompletion],
  ["zsh", zshCompletion],
  ["fish", fishCompletion],
]);

const HOW_TO = `
To use it:
  bash, in ~/.bashrc  source <(jobtable completion bash)
  zsh, in ~/.zshrc    source <(jobtable completion zsh)     (after compinit)
  fish                jobtable completion fish > ~/.config/fish/completions/jobtable.fish`;

export function addCompletion(program: Command, runner: Runner): void {
  const known = [...SHELLS.keys()];
  const command = addPlainVerb(program, runner, {
    usage: "completion <shell>",
    summary: "Print what a shell needs to complete commands and flags",
    example: "jobtable completion bash",
    async run({ args, json, terminal }) {
      const [shell = ""] = args;
      const script = SHELLS.get(shell);
      if (script === undefined)
        throw misuse(
          `completion: ${JSON.stringify(shell)} is no shell of ours; expected ${known.join(", ")}`,
        );
      const text = script(completionsOf(program));
      terminal.print(json ? JSON.stringify({ shell, script: text }) : text);
      return EXIT.done;
    },
  });
  for (const argument of command.registeredArguments) argument.argChoices = known;
  command.addHelpText("after", HOW_TO);
}
