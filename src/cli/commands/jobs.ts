/** `jobtable jobs list|show|wait|result|cancel|retry`: looks at jobs, cancels them, runs them once more. */
import { Option, type Command } from "commander";
import type { Jobs, JobsQuery } from "../../client/jobs.js";
import type { JobView } from "../../client/replies.js";
import { ALL_STATES, type State } from "../../http/wire.js";
import { parseDuration } from "../../job/duration.js";
import { systemClock } from "../../runtime/clock.js";
import { endOf, withResult } from "../ended.js";
import { EXIT, exitCodeOfRefusal, misuse, type ExitCode } from "../exit-code.js";
import { awaitEnd, follow } from "../follow.js";
import { isNews, jobFields, jobJsonText, jobLine, jobTable } from "../job-text.js";
import { JOBS_SETTINGS, jobIdFrom, withJobs } from "../open-jobs.js";
import { orNamed, recordedText } from "../recorded.js";
import { withChoices } from "../setting-flags.js";
import { safeJson } from "../text.js";
import { addExample, addVerb, textOption, type Invocation, type Runner } from "../verb.js";

const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 1_000;
const DEFAULT_WAIT_MS = 30_000;
const EXAMPLE_ID = "job_01J0000000000000000000000A";

export function addJobs(program: Command, runner: Runner): void {
  const jobs = program
    .command("jobs")
    .summary("Look at jobs, cancel them, run them once more")
    .description("Look at jobs, cancel them, run them once more.");
  addExample(jobs, "jobtable jobs list --state pending,running");
  const settings = JOBS_SETTINGS;
  addVerb(jobs, runner, {
    usage: "list",
    summary: "List jobs, newest first",
    example: "jobtable jobs list --state failed --limit 50",
    settings,
    run: list,
  })
    .addOption(withChoices(new Option("--state <states>", "only these, with commas"), ALL_STATES))
    .option("--task <name>", "only jobs of this task")
    .option("--plan <id>", "only jobs of this plan")
    .option("--limit <count>", `at most this many (default: ${DEFAULT_LIMIT})`)
    .option("--cursor <cursor>", "go on after a page, with the cursor that it printed");
  addVerb(jobs, runner, {
    usage: "show <id>",
    summary: "Show one job; with --follow, until it has ended",
    example: `jobtable jobs show ${EXAMPLE_ID} --follow`,
    settings,
    run: show,
  }).option("-f, --follow", "show what changes until the job has ended; fails unless it is done");
  addVerb(jobs, runner, {
    usage: "wait <id>",
    summary: "Wait for a job's end; fails unless it is done",
    example: `jobtable jobs wait ${EXAMPLE_ID} --timeout 5m`,
    settings,
    run: wait,
  }).option("--timeout <duration>", "longest wait (default: 30s; 0 = no limit)");
  addVerb(jobs, runner, {
    usage: "result <id>",
    summary: "Print what a job that is done gave",
    example: `jobtable jobs result ${EXAMPLE_ID}`,
    settings,
    run: result,
  });
  addVerb(jobs, runner, {
    usage: "cancel <id>",
    summary: "Cancel a job that waits or runs",
    example: `jobtable jobs cancel ${EXAMPLE_ID}`,
    settings,
    run: cancel,
  });
  addVerb(jobs, runner, {
    usage: "retry <id>",
    summary: "Run what has ended once more, as a new job; prints its id",
    example: `jobtable jobs retry ${EXAMPLE_ID}`,
    settings: [...settings, "async_max_queue"],
    run: retry,
  }).option("--idempotency-key <key>", "one job per key: again with the same one, the same job");
}

async function list(invocation: Invocation): Promise<ExitCode> {
  const { json, terminal } = invocation;
  const query = queryFrom(invocation);
  const page = await withJobs(invocation, (jobs) => jobs.list(query));
  if (json) {
    terminal.print(safeJson(JSON.stringify(page)));
    return EXIT.done;
  }
  terminal.print(jobTable(page.jobs, terminal.look));
  if (page.next_cursor !== undefined) terminal.print(`more: --cursor ${page.next_cursor}`);
  return EXIT.done;
}

function queryFrom(invocation: Invocation): JobsQuery {
  const limit = Number(textOption(invocation, "limit") ?? DEFAULT_LIMIT);
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
    throw misuse(`--limit: expected a whole number from 1 to ${MAX_LIMIT}`);
  const states = textOption(invocation, "state");
  const task = textOption(invocation, "task");
  const plan = textOption(invocation, "plan");
  const cursor = textOption(invocation, "cursor");
  return {
    limit,
    ...(states === undefined ? {} : { states: states.split(",").map(stateFrom) }),
    ...(task === undefined ? {} : { task }),
    ...(plan === undefined ? {} : { plan }),
    ...(cursor === undefined ? {} : { cursor }),
  };
}

function stateFrom(word: string): State {
  const state = ALL_STATES.find((known) => known === word.trim());
  if (state === undefined)
    throw misuse(`--state: ${JSON.stringify(word)} is no state; expected ${ALL_STATES.join(", ")}`);
  return state;
}

/** Runs `use` on the job that the command names; an unknown one is told. */
async function withJob(
  invocation: Invocation,
  use: (jobs: Jobs, job: JobView) => Promise<ExitCode>,
): Promise<ExitCode> {
  const jobId = jobIdFrom(invocation.args[0]);
  return withJobs(invocation, async (jobs) => {
    const job = await jobs.get(jobId);
    return job === null ? unknown(invocation) : use(jobs, job);
  });
}

async function show(invocation: Invocation): Promise<ExitCode> {
  return withJob(invocation, async (jobs, job) => {
    if (invocation.options["follow"] === true) return showUntilEnd(invocation, jobs, job);
    printJob(invocation, job);
    return EXIT.done;
  });
}

/** On a terminal one view that changes; elsewhere a line for each change. The job is only looked at. */
async function showUntilEnd(invocation: Invocation, jobs: Jobs, first: JobView): Promise<ExitCode> {
  const { json, terminal } = invocation;
  const live = json ? null : terminal.liveAnswer();
  let before: JobView | null = null;
  const seen = (job: JobView): void => {
    if (live !== null) live.show(jobFields(job, terminal.look));
    else if (isNews(before, job)) terminal.print(json ? jobJsonText(job) : jobLine(job));
    before = job;
  };
  try {
    const last = await follow(jobs, first, { clock: systemClock, watched: true, seen });
    live?.clear();
    if (live !== null) printJob(invocation, last);
    return last.state === "done" ? EXIT.done : EXIT.failed;
  } finally {
    live?.clear();
  }
}

function printJob({ json, terminal }: Invocation, job: JobView): void {
  terminal.print(json ? jobJsonText(job) : jobFields(job, terminal.look));
}

async function wait(invocation: Invocation): Promise<ExitCode> {
  const limitMs = waitLimitFrom(invocation);
  return withJob(invocation, async (jobs, job) => {
    const last = await awaitEnd(jobs, job, invocation.terminal, { clock: systemClock, limitMs });
    printJob(invocation, last);
    return last.state === "done" ? EXIT.done : EXIT.failed;
  });
}

function waitLimitFrom(invocation: Invocation): number {
  const text = textOption(invocation, "timeout");
  const limitMs = text === undefined ? DEFAULT_WAIT_MS : parseDuration(text, "s");
  if (limitMs === undefined)
    throw misuse(`--timeout: ${JSON.stringify(text)} is no duration; expected seconds, or "5m"`);
  return limitMs === 0 ? Infinity : limitMs;
}

async function result(invocation: Invocation): Promise<ExitCode> {
  return withJob(invocation, async (jobs, job) =>
    endOf(invocation, await withResult(jobs, job), "envelope"),
  );
}

async function cancel(invocation: Invocation): Promise<ExitCode> {
  const { args, json, terminal } = invocation;
  const jobId = jobIdFrom(args[0]);
  const answer = await withJobs(invocation, (jobs) => jobs.cancel(jobId));
  switch (answer.kind) {
    case "unknown":
      return unknown(invocation);
    case "refused":
      terminal.complain(answer.message);
      return exitCodeOfRefusal(answer);
    case "cancelled":
    case "requested": {
      const { jobId: id, state } = answer;
      if (json) terminal.print(JSON.stringify({ job_id: id, state }));
      else if (answer.kind === "cancelled") terminal.print(`${id} cancelled`);
      else terminal.print(`${id} was told to stop; it is ${state} until its worker has ended it`);
      return EXIT.done;
    }
    default:
      return answer satisfies never;
  }
}

async function retry(invocation: Invocation): Promise<ExitCode> {
  const { args, json, terminal } = invocation;
  const jobId = jobIdFrom(args[0]);
  const key = textOption(invocation, "idempotencyKey");
  return withJobs(invocation, async (jobs) => {
    const answer = await jobs.retry(jobId, key === undefined ? {} : { idempotencyKey: key });
    switch (answer.kind) {
      case "unknown":
        return unknown(invocation);
      case "refused":
        terminal.complain(answer.message);
        return exitCodeOfRefusal(answer);
      case "accepted": {
        const { jobId: id } = answer;
        terminal.print(json ? await orNamed(id, terminal, () => recordedText(jobs, id)) : id);
        return EXIT.done;
      }
      default:
        return answer satisfies never;
    }
  });
}

function unknown({ args, terminal }: Invocation): ExitCode {
  terminal.complain(`job not found: ${args[0] ?? ""}`);
  return EXIT.failed;
}
