/** `jobtable plan execute|apply|show|diff|list|cancel`: changes to a repository, made aside, looked at, taken whole. */
import { Option, type Command } from "commander";
import type { SettingName } from "../../config/settings.js";
import type { ExitCode } from "../exit-code.js";
import { addExample, addVerb, type Invocation, type Runner, type Verb } from "../verb.js";

const LOOK: readonly SettingName[] = ["store", "log_level"];
const RUN: readonly SettingName[] = [
  ...LOOK,
  "async_enabled",
  "async_max_queue",
  "cancel_grace",
  "model_run_timeout",
  "worker_timeout",
];
const TASKS = new Option("--tasks <paths...>", "task files for steps that run here");

type Deed = "execute" | "apply" | "show" | "diff" | "list" | "cancel";

export function addPlan(program: Command, runner: Runner): void {
  const plan = program
    .command("plan")
    .summary("Execute a plan in a sandbox, look at its patch, apply it")
    .description("Execute a plan in a sandbox, look at its patch, apply it.");
  addExample(plan, "jobtable plan execute rename.yaml");
  const add = (deed: Deed, verb: Omit<Verb, "run">): Command =>
    addVerb(plan, runner, {
      ...verb,
      // What plans need takes a while to load.
      run: async (invocation: Invocation): Promise<ExitCode> =>
        (await import("../planning.js"))[deed](invocation),
    });
  addPhases(add);
  addLooks(add);
}

type Add = (deed: Deed, verb: Omit<Verb, "run">) => Command;

function addPhases(add: Add): void {
  const follow = (command: Command): void => {
    command
      .addOption(TASKS)
      .option("-w, --wait", "as a job: wait for its end")
      .option("-f, --follow", "as a job: show what its steps write until its end");
  };
  follow(
    add("execute", {
      usage: "execute <plan>",
      summary: "Run a plan's steps in a sandbox and keep what they change as a patch",
      example: "jobtable plan execute rename.yaml --async-enabled --follow",
      settings: RUN,
    }),
  );
  const apply = add("apply", {
    usage: "apply <plan>",
    summary: "Put the patch of the last execute on the workspace, all of it or nothing",
    example: "jobtable plan apply rename-warning --check",
    settings: RUN,
  });
  follow(apply.option("--check", "only say whether it would fit"));
}

function addLooks(add: Add): void {
  add("show", {
    usage: "show <plan>",
    summary: "Show a plan's phases, their steps, and what its patch changes",
    example: "jobtable plan show rename-warning --logs",
    settings: LOOK,
  }).option("--logs", "with what the steps wrote");
  add("diff", {
    usage: "diff <plan>",
    summary: "Print the patch of the last execute that made one",
    example: "jobtable plan diff rename-warning",
    settings: LOOK,
  });
  add("list", {
    usage: "list",
    summary: "List the plans that were used, the last one first",
    example: "jobtable plan list",
    settings: LOOK,
  });
  add("cancel", {
    usage: "cancel <plan>",
    summary: "Cancel the phase of a plan that waits or runs",
    example: "jobtable plan cancel rename-warning",
    settings: LOOK,
  });
}
