/** `jobtable submit`: records a job for whichever worker shares the store, and may wait for its end. */
import type { Command } from "commander";
import { readFile } from "node:fs/promises";
import type { Jobs, SubmitRequest } from "../../client/jobs.js";
import { parseTime } from "../../http/run-at.js";
import { parseDuration } from "../../job/duration.js";
import { UNSTATED_VERSION } from "../../job/payload.js";
import { systemClock } from "../../runtime/clock.js";
import type { RegisteredTask } from "../../task/registry.js";
import { endOf, withResult } from "../ended.js";
import { EXIT, exitCodeOfRefusal, misuse, type ExitCode } from "../exit-code.js";
import { awaitEnd, patiently } from "../follow.js";
import { JOBS_SETTINGS, serverOf, withJobs } from "../open-jobs.js";
import { orNamed, recordedText } from "../recorded.js";
import { addVerb, textOption, type Invocation, type Runner } from "../verb.js";

export function addSubmit(program: Command, runner: Runner): void {
  const command = addVerb(program, runner, {
    usage: "submit <task>",
    summary: "Record a job; prints its id, or with --wait its result",
    example: `jobtable submit ocr --input @request.json --wait`,
    settings: [...JOBS_SETTINGS, "async_max_queue", "worker_timeout"],
    run,
  });
  command
    .option("-i, --input <json>", "the input: JSON, @FILE, or - for standard input (default: {})")
    .option("-w, --wait", "wait for the job's end and print its result")
    .option("--task-file <file>", "check the input by this task before it is recorded")
    .option("--request-id <id>", "an id of yours, echoed with the result")
    .option("--idempotency-key <key>", "one job per key: again with the same one, the same job")
    .option("--priority <number>", "larger is sooner (default: 0)")
    .option("--delay <duration>", 'earliest start from now, such as "5m"')
    .option("--run-at <time>", 'earliest start, such as "2026-03-01T09:00:00Z"; with a zone')
    .option("--max-attempts <number>", "how often it may be tried (default: the task's, or 1)");
}

async function run(invocation: Invocation): Promise<ExitCode> {
  const { args, options, json, terminal } = invocation;
  const request = await requestFrom(invocation, args[0] ?? "");
  const tasks = await tasksFor(invocation, request.task);
  return withJobs(
    invocation,
    async (jobs) => {
      const answer = await jobs.submit(request);
      if (answer.kind === "refused") {
        terminal.complain(answer.message);
        return exitCodeOfRefusal(answer);
      }
      return orNamed(answer.jobId, terminal, async () => {
        // A repeated one may have ended long ago.
        const warn = async (): Promise<void> =>
          answer.repeated ? undefined : warnWhenNobodyWorks(jobs, invocation, answer.jobId);
        if (options["wait"] === true) {
          await warn();
          return waitForEnd(invocation, jobs, answer.jobId);
        }
        terminal.print(json ? await recordedText(jobs, answer.jobId) : answer.jobId);
        await warn();
        return EXIT.done;
      });
    },
    { tasks, create: true },
  );
}

async function waitForEnd(invocation: Invocation, jobs: Jobs, jobId: string): Promise<ExitCode> {
  const { terminal } = invocation;
  const job = await patiently(systemClock, () => jobs.get(jobId));
  if (job === null) {
    terminal.complain(`job not found: ${jobId}; it ended and was forgotten`);
    return EXIT.failed;
  }
  const last = await awaitEnd(jobs, job, terminal, { clock: systemClock });
  return endOf(invocation, await withResult(jobs, last), "data");
}

async function requestFrom(invocation: Invocation, task: string): Promise<SubmitRequest> {
  const start = startFrom(invocation);
  const input = await inputFrom(invocation);
  const given = {
    requestId: textOption(invocation, "requestId"),
    idempotencyKey: textOption(invocation, "idempotencyKey"),
    priority: numberFrom(invocation, "priority"),
    maxAttempts: numberFrom(invocation, "maxAttempts"),
  };
  const set = Object.entries(given).filter(([, value]) => value !== undefined);
  return { task, input, ...start, ...Object.fromEntries(set) };
}

function startFrom(invocation: Invocation): Pick<SubmitRequest, "delayMs" | "runAtMs"> {
  const delay = textOption(invocation, "delay");
  const runAt = textOption(invocation, "runAt");
  if (delay !== undefined && runAt !== undefined)
    throw misuse("--delay and --run-at: both say when it may start; leave one of them out");
  if (delay !== undefined) {
    const delayMs = parseDuration(delay, "s");
    if (delayMs !== undefined) return { delayMs };
    throw misuse(`--delay: ${JSON.stringify(delay)} is no duration; expected seconds, or "5m"`);
  }
  if (runAt === undefined) return {};
  const runAtMs = parseTime(runAt.trim());
  if (runAtMs !== null) return { runAtMs };
  throw misuse(
    `--run-at: ${JSON.stringify(runAt)} is no time; expected one with a zone, such as "2026-03-01T09:00:00Z"`,
  );
}

function numberFrom(invocation: Invocation, name: string): number | undefined {
  const text = textOption(invocation, name);
  return text === undefined ? undefined : Number(text.trim() === "" ? NaN : text);
}

async function inputFrom(invocation: Invocation): Promise<unknown> {
  const given = textOption(invocation, "input");
  if (given === undefined) return {};
  const [from, text] = await readInput(invocation, given);
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw misuse(`--input: ${from} is not JSON (${why})`);
  }
}

async function readInput(
  { terminal }: Invocation,
  given: string,
): Promise<[from: string, text: string]> {
  if (given === "-") return ["standard input", await terminal.readInput()];
  if (!given.startsWith("@")) return ["the text", given];
  const path = given.slice(1);
  try {
    return [path, await readFile(path, "utf8")];
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw misuse(`--input: ${path} can't be read (${why})`);
  }
}

/** Without the task's file nothing is known about its input: the worker takes it for the present version, and checks it before it runs. */
async function tasksFor(invocation: Invocation, name: string): Promise<RegisteredTask[]> {
  const file = textOption(invocation, "taskFile");
  const server = serverOf(invocation);
  if (file !== undefined && server !== null)
    throw misuse(`--task-file: ${server} checks the input by its own task; leave it out`);
  if (file !== undefined) return (await import("../../task/load-tasks.js")).loadTasks([file]);
  return [
    {
      name,
      description: null,
      isolation: "inline",
      timeoutMs: null,
      maxAttempts: 1,
      file: null,
      version: UNSTATED_VERSION,
      definition: { run: () => null },
    },
  ];
}

/** The job is recorded by now: a look that fails is no reason to say otherwise. */
async function warnWhenNobodyWorks(
  jobs: Jobs,
  { args, terminal }: Invocation,
  jobId: string,
): Promise<void> {
  try {
    const job = await jobs.get(jobId);
    if (job === null || (await jobs.isServed(job))) return;
  } catch {
    return;
  }
  terminal.complain(`no worker runs task ${args[0] ?? ""} now; the job waits until one does`);
}
