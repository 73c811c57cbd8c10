/** `jobtable worker`: runs the jobs of a store that other processes share. */
import type { Command } from "commander";
import type { SettingName } from "../../config/settings.js";
import { addVerb, type Runner } from "../verb.js";

const SETTINGS: readonly SettingName[] = [
  "store",
  "async_enabled",
  "plans",
  "max_workers",
  "poll_interval",
  "job_timeout",
  "worker_timeout",
  "model_run_timeout",
  "async_timeout",
  "async_job_ttl",
  "async_max_completed",
  "cancel_grace",
  "shutdown_timeout",
  "log_level",
];

export function addWorker(program: Command, runner: Runner): void {
  addVerb(program, runner, {
    usage: "worker [tasks...]",
    summary: "Run the jobs of a shared store",
    example: "jobtable worker tasks/ --store sqlite:jobs.db --max-workers 8",
    settings: SETTINGS,
    run: async (invocation) => (await import("../working.js")).work(invocation),
  });
}
