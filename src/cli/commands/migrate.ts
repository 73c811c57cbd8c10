/** `jobtable migrate`: makes the store, or brings it up to date, without serving; `--print` only shows how. */
import type { Command } from "commander";
import { maskStore } from "../../config/values.js";
import { EXIT, type ExitCode } from "../exit-code.js";
import { refuseServer } from "../open-jobs.js";
import { addVerb, type Invocation, type Runner } from "../verb.js";

export function addMigrate(program: Command, runner: Runner): void {
  addVerb(program, runner, {
    usage: "migrate",
    summary: "Make the store, or bring it up to date; serve and worker do so by themselves",
    example: "jobtable migrate --print --store sqlite:.jobtable/jobs.db",
    settings: ["server", "store", "log_level"],
    run,
  }).option("--print", "print the statements and change nothing");
}

async function run(invocation: Invocation): Promise<ExitCode> {
  const { config, options, json, terminal } = invocation;
  refuseServer(invocation, "migrate");
  const [{ migrations, openLedger }, { quietLogger, refuseMemory }] = await Promise.all([
    import("../../compose.js"),
    import("../session.js"),
  ]);
  refuseMemory(config);
  const logger = quietLogger(invocation);
  const plan = await migrations(config.store, { logger });
  const isDue = plan.statements.length > 0;
  const prints = options["print"] === true;
  // Opening runs what is due, as it does for everyone who opens.
  if (!prints && isDue) await (await openLedger(config.store, { logger })).close();
  const store = maskStore(config.store);
  if (json) terminal.print(JSON.stringify({ store, ...plan, done: !prints && isDue }));
  else if (!isDue) terminal.print(upToDate(prints, store, plan.to));
  else if (prints) terminal.print(plan.statements.map(terminated).join("\n"));
  else terminal.print(`${store}: brought from version ${plan.from} to ${plan.to}`);
  return EXIT.done;
}

/** So that what is printed can be run by the database's own shell. */
function terminated(statement: string): string {
  const text = statement.trimEnd();
  return text.endsWith(";") ? text : `${text};`;
}

/** As a comment where SQL is expected. */
function upToDate(prints: boolean, store: string, version: number): string {
  return `${prints ? "-- " : ""}${store}: up to date (version ${version})`;
}
