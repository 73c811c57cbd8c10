/** `jobtable jobs list|show|wait|result|cancel`: looks at the jobs of a shared store, and cancels them. */
import type { Command } from "commander";
import type { SettingName } from "../../config/settings.js";
import { jobJson, ALL_STATES, STATES, statusOf } from "../../http/wire.js";
import { parseDuration } from "../../job/duration.js";
import { formatJobId } from "../../job/id.js";
import type { Job } from "../../job/job.js";
import { isTerminal, type Status } from "../../job/state.js";
import type { ListQuery } from "../../ledger/ledger.js";
import { systemClock } from "../../runtime/clock.js";
import { endOf, withResult } from "../ended.js";
import { EXIT, misuse, type ExitCode } from "../exit-code.js";
import { jobIdFrom, withLedger } from "../session.js";
import { fields, formatMs, formatTime, shorten, table } from "../text.js";
import { addVerb, textOption, type Invocation, type Runner } from "../verb.js";

const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 1_000;
const ERROR_COLUMN_CHARS = 60;
const DEFAULT_WAIT_MS = 30_000;

export function addJobs(program: Command, runner: Runner): void {
  const jobs = program
    .command("jobs")
    .summary("Look at jobs and cancel them")
    .description("Look at jobs and cancel them.");
  jobs.addHelpText("after", "\nExample:\n  $ jobtable jobs list --state pending,running");
  const settings: SettingName[] = ["store", "log_level"];
  addVerb(jobs, runner, {
    usage: "list",
    summary: "List jobs, newest first",
    example: "jobtable jobs list --state failed --limit 50",
    settings,
    run: list,
  })
    .option("--state <states>", `only these: ${ALL_STATES.join(", ")}`)
    .option("--task <name>", "only jobs of this task")
    .option("--limit <count>", `at most this many (default: ${DEFAULT_LIMIT})`)
    .option("--cursor <cursor>", "go on after a page, with the cursor that it printed");
  addVerb(jobs, runner, {
    usage: "show <id>",
    summary: "Show one job",
    example: "jobtable jobs show job_01J0000000000000000000000A",
    settings,
    run: show,
  });
  addVerb(jobs, runner, {
    usage: "wait <id>",
    summary: "Wait for a job's end; fails unless it is done",
    example: "jobtable jobs wait job_01J0000000000000000000000A --timeout 5m",
    settings,
    run: wait,
  }).option("--timeout <duration>", "longest wait (default: 30s; 0 = no limit)");
  addVerb(jobs, runner, {
    usage: "result <id>",
    summary: "Print what a job that is done gave",
    example: "jobtable jobs result job_01J0000000000000000000000A",
    settings,
    run: result,
  });
  addVerb(jobs, runner, {
    usage: "cancel <id>",
    summary: "Cancel a job that waits or runs",
    example: "jobtable jobs cancel job_01J0000000000000000000000A",
    settings,
    run: cancel,
  });
}

async function list(invocation: Invocation): Promise<ExitCode> {
  const { json, terminal } = invocation;
  const query = queryFrom(invocation);
  const { jobs, nextCursor } = await withLedger(invocation, [], ({ engine }) => engine.list(query));
  const nowMs = systemClock.nowMs();
  if (json) {
    const next = nextCursor === undefined ? "" : `,"next_cursor":${JSON.stringify(nextCursor)}`;
    terminal.print(`{"jobs":[${jobs.map((job) => jobJson(job, nowMs)).join(",")}]${next}}`);
    return EXIT.done;
  }
  const rows = jobs.map((job) => [
    formatJobId(job.jobId),
    STATES[job.status],
    job.task,
    formatTime(job.createdAtMs) ?? "",
    formatMs(elapsedMs(job, nowMs)),
    shorten(job.errorMessage ?? "", ERROR_COLUMN_CHARS),
  ]);
  terminal.print(table(["JOB", "STATE", "TASK", "CREATED", "ELAPSED", "ERROR"], rows));
  if (nextCursor !== undefined) terminal.print(`more: --cursor ${nextCursor}`);
  return EXIT.done;
}

function queryFrom(invocation: Invocation): ListQuery {
  const limit = Number(textOption(invocation, "limit") ?? DEFAULT_LIMIT);
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
    throw misuse(`--limit: expected a whole number from 1 to ${MAX_LIMIT}`);
  const states = textOption(invocation, "state");
  const task = textOption(invocation, "task");
  const cursor = textOption(invocation, "cursor");
  return {
    limit,
    ...(states === undefined ? {} : { statuses: states.split(",").map(statusFrom) }),
    ...(task === undefined ? {} : { task }),
    ...(cursor === undefined ? {} : { cursor }),
  };
}

function statusFrom(word: string): Status {
  const status = statusOf(word.trim());
  if (status === undefined)
    throw misuse(`--state: ${JSON.stringify(word)} is no state; expected ${ALL_STATES.join(", ")}`);
  return status;
}

function elapsedMs(job: Job, nowMs: number): number {
  return Math.max(0, (job.finishedAtMs ?? nowMs) - job.createdAtMs);
}

async function show(invocation: Invocation): Promise<ExitCode> {
  const { args, terminal } = invocation;
  const jobId = jobIdFrom(args[0]);
  const job = await withLedger(invocation, [], ({ engine }) => engine.get(jobId));
  if (job === null) return unknown(invocation);
  terminal.print(describe(invocation, job));
  return EXIT.done;
}

function describe({ json }: Invocation, job: Job): string {
  const nowMs = systemClock.nowMs();
  if (json) return jobJson(job, nowMs);
  return fields([
    ["job", formatJobId(job.jobId)],
    ["state", STATES[job.status]],
    ["task", job.task],
    ["created", formatTime(job.createdAtMs)],
    ["started", formatTime(job.startedAtMs)],
    ["finished", formatTime(job.finishedAtMs)],
    ["elapsed", formatMs(elapsedMs(job, nowMs))],
    ["attempt", `${job.attempt} of ${job.maxAttempts}`],
    ["worker", job.workerId],
    ["heartbeat", formatTime(job.lastHeartbeatMs)],
    ["cancel asked", formatTime(job.cancelRequestedAtMs)],
    ["request id", job.requestId],
    ["progress", job.progressJson],
    ["error", job.errorMessage],
  ]);
}

async function wait(invocation: Invocation): Promise<ExitCode> {
  const { args, terminal } = invocation;
  const jobId = jobIdFrom(args[0]);
  const timeoutMs = waitLimitFrom(invocation);
  const job = await withLedger(invocation, [], ({ engine }) =>
    engine.wait(jobId, { timeoutMs, until: "end" }),
  );
  if (job === null) return unknown(invocation);
  terminal.print(describe(invocation, job));
  return job.status === "succeeded" ? EXIT.done : EXIT.failed;
}

function waitLimitFrom(invocation: Invocation): number {
  const text = textOption(invocation, "timeout");
  const limitMs = text === undefined ? DEFAULT_WAIT_MS : parseDuration(text, "s");
  if (limitMs === undefined)
    throw misuse(`--timeout: ${JSON.stringify(text)} is no duration; expected seconds, or "5m"`);
  return limitMs === 0 ? Number.MAX_SAFE_INTEGER : limitMs;
}

async function result(invocation: Invocation): Promise<ExitCode> {
  const { args } = invocation;
  const jobId = jobIdFrom(args[0]);
  const ended = await withLedger(invocation, [], async ({ engine }) => {
    const job = await engine.get(jobId);
    return job === null ? null : withResult(engine, job);
  });
  return ended === null ? unknown(invocation) : endOf(invocation, ended, "envelope");
}

async function cancel(invocation: Invocation): Promise<ExitCode> {
  const { args, json, terminal } = invocation;
  const jobId = jobIdFrom(args[0]);
  const outcome = await withLedger(invocation, [], ({ engine }) => engine.cancel(jobId));
  if (outcome.kind === "unknown") return unknown(invocation);
  const { job } = outcome;
  const [id, state] = [formatJobId(job.jobId), STATES[job.status]];
  if (outcome.kind === "terminal" && isTerminal(job.status)) {
    terminal.complain(`job ${id} has already ended (${state})`);
    return EXIT.failed;
  }
  if (json) terminal.print(JSON.stringify({ job_id: id, state }));
  else if (outcome.kind === "cancelled") terminal.print(`${id} cancelled`);
  else terminal.print(`${id} was told to stop; it is ${state} until its worker has ended it`);
  return EXIT.done;
}

function unknown({ args, terminal }: Invocation): ExitCode {
  terminal.complain(`job not found: ${args[0] ?? ""}`);
  return EXIT.failed;
}
