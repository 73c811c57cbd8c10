/**
 * The whole command line: every command, and what their failures become. An error that is expected
 * is one line on standard error and an exit code; one that is not is a bug and shows its stack.
 */
import { Command, CommanderError } from "commander";
import { readFileSync } from "node:fs";
import { ClientError } from "../client/transport.js";
import { JobtableError } from "../job/errors.js";
import { addCleanup } from "./commands/cleanup.js";
import { addCompletion } from "./commands/completion.js";
import { addConfig } from "./commands/config.js";
import { addDiagnostics } from "./commands/diagnostics.js";
import { addInit } from "./commands/init.js";
import { addJobs } from "./commands/jobs.js";
import { addMigrate } from "./commands/migrate.js";
import { addPlan } from "./commands/plan.js";
import { addServe } from "./commands/serve.js";
import { addSubmit } from "./commands/submit.js";
import { addWorker } from "./commands/worker.js";
import { EXIT, exitCodeOf, type ExitCode } from "./exit-code.js";
import { spellOutBooleans } from "./setting-flags.js";
import type { Terminal } from "./terminal.js";
import { addExample, type Cli, type Runner } from "./verb.js";

/** @param args without the interpreter and the script. */
export async function runCommandLine(args: readonly string[], cli: Cli): Promise<ExitCode> {
  let code: ExitCode = EXIT.done;
  const program = createProgram({ ...cli, ended: (ended) => (code = ended) });
  try {
    await program.parseAsync(spellOutBooleans(args), { from: "user" });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.misuse;
    complainOf(error, cli.terminal);
    return exitCodeOf(error);
  }
}

/** Every command, with what it does; nothing is run yet. */
export function createProgram(runner: Runner): Command {
  const program = new Command("jobtable")
    .description("Puts slow work behind an API: bounded, durable, cancellable jobs.")
    .version(version(), "-V, --version")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => runner.terminal.print(text.trimEnd()),
      // The help, where a command is missing.
      writeErr: (text) => runner.terminal.explain(text.trimEnd()),
      outputError: (text) => runner.terminal.complain(text.replace(/^error: /, "")),
    });
  for (const add of [
    addServe,
    addWorker,
    addSubmit,
    addJobs,
    addPlan,
    addDiagnostics,
    addCleanup,
    addMigrate,
    addConfig,
    addInit,
    addCompletion,
  ])
    add(program, runner);
  addExample(program, "jobtable serve tasks/ocr.ts");
  return program;
}

function version(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  const { version: own } = JSON.parse(text) as { version: string };
  return own;
}

function complainOf(error: unknown, terminal: Terminal): void {
  if (error instanceof JobtableError || error instanceof ClientError)
    terminal.complain(error.message);
  else if (error instanceof Error) terminal.complain(`bug: ${error.stack ?? error.message}`);
  else terminal.complain(`bug: ${String(error)}`);
}
