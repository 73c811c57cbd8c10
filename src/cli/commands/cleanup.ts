/** `jobtable cleanup`: forgets the jobs that retention no longer keeps, now. */
import type { Command } from "commander";
import { EXIT, type ExitCode } from "../exit-code.js";
import { refuseServer } from "../open-jobs.js";
import { addVerb, type Invocation, type Runner } from "../verb.js";

/** Short enough that others come between two chunks. */
const CHUNK = 1_000;

export function addCleanup(program: Command, runner: Runner): void {
  addVerb(program, runner, {
    usage: "cleanup",
    summary: "Forget ended jobs beyond their time (async_job_ttl) or number (async_max_completed)",
    example: "jobtable cleanup --async-job-ttl 7d",
    settings: ["server", "store", "async_job_ttl", "async_max_completed", "log_level"],
    run,
  });
}

async function run(invocation: Invocation): Promise<ExitCode> {
  const { config, json, terminal } = invocation;
  refuseServer(invocation, "cleanup");
  const { withLedger } = await import("../session.js");
  const removed = await withLedger(invocation, { tasks: [], create: false }, async ({ ledger }) => {
    const limit = { ttlMs: config.asyncJobTtlMs, keep: config.asyncMaxCompleted, chunk: CHUNK };
    let total = 0;
    for (let count = CHUNK; count >= CHUNK; total += count) count = await ledger.evict(limit);
    return total;
  });
  terminal.print(
    json ? JSON.stringify({ removed }) : `${removed} ${removed === 1 ? "job" : "jobs"} removed`,
  );
  return EXIT.done;
}
