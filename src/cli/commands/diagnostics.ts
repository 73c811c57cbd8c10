/** `jobtable diagnostics`: the queue, the ledger, who works on it, and what is wrong; fails where something is. */
import type { Command } from "commander";
import type { DiagnosticsView } from "../../client/replies.js";
import { diagnosticsText } from "../diagnostics-text.js";
import { EXIT, type ExitCode } from "../exit-code.js";
import { JOBS_SETTINGS, serverOf, withJobs } from "../open-jobs.js";
import { maskStore } from "../../config/values.js";
import { safeJson } from "../text.js";
import { addVerb, type Invocation, type Runner } from "../verb.js";

export function addDiagnostics(program: Command, runner: Runner): void {
  addVerb(program, runner, {
    usage: "diagnostics",
    summary:
      "Show the queue, the ledger and every worker, and what is wrong; fails where something is",
    example: "jobtable diagnostics --store sqlite:.jobtable/jobs.db",
    settings: [
      ...JOBS_SETTINGS,
      "async_enabled",
      "max_workers",
      "poll_interval",
      "async_max_queue",
      "async_timeout",
      "worker_timeout",
      "job_timeout",
    ],
    run,
  });
}

async function run(invocation: Invocation): Promise<ExitCode> {
  const { json, terminal } = invocation;
  const seen: DiagnosticsView = await withJobs(invocation, (jobs) => jobs.diagnose());
  const asked = serverOf(invocation) ?? maskStore(invocation.config.store);
  terminal.print(
    json ? safeJson(JSON.stringify(seen, null, 2)) : diagnosticsText(seen, asked, terminal.look),
  );
  return seen.ok ? EXIT.done : EXIT.failed;
}
