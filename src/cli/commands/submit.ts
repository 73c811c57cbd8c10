/** `jobtable submit`: records a job for whichever worker shares the store, and may wait for its end. */
import type { Command } from "commander";
import { readFile } from "node:fs/promises";
import type { SubmitRequest, SubmitResult } from "../../engine/api.js";
import { jobJson } from "../../http/wire.js";
import { parseDuration } from "../../job/duration.js";
import { formatJobId } from "../../job/id.js";
import type { Job } from "../../job/job.js";
import { FIRST_VERSION } from "../../job/payload.js";
import { systemClock } from "../../runtime/clock.js";
import { loadTasks } from "../../task/load-tasks.js";
import type { RegisteredTask } from "../../task/registry.js";
import { awaitEnd, endOf, type Ended } from "../ended.js";
import { EXIT, misuse, type ExitCode } from "../exit-code.js";
import { withLedger, type Session } from "../session.js";
import { addVerb, textOption, type Invocation, type Runner } from "../verb.js";

export function addSubmit(program: Command, runner: Runner): void {
  const command = addVerb(program, runner, {
    usage: "submit <task>",
    summary: "Record a job; prints its id, or with --wait its result",
    example: `jobtable submit ocr --input @request.json --wait`,
    settings: ["store", "async_max_queue", "worker_timeout", "log_level"],
    run,
  });
  command
    .option("-i, --input <json>", "the input: JSON, @FILE, or - for standard input (default: {})")
    .option("-w, --wait", "wait for the job's end and print its result")
    .option("--task-file <file>", "check the input by this task before it is recorded")
    .option("--request-id <id>", "an id of yours, echoed with the result")
    .option("--priority <number>", "larger is sooner (default: 0)")
    .option("--delay <duration>", 'earliest start from now, such as "5m"')
    .option("--max-attempts <number>", "how often it may be tried (default: the task's, or 1)");
}

async function run(invocation: Invocation): Promise<ExitCode> {
  const { args, options, terminal } = invocation;
  const request = await requestFrom(invocation, args[0] ?? "");
  const tasks = await tasksFor(request.task, textOption(invocation, "taskFile"));
  const answer = await withLedger(invocation, tasks, async (session) => {
    const result = await session.engine.submit(request);
    if (result.kind !== "accepted") return result;
    await warnWhenNobodyWorks(session, invocation, request.task);
    if (options["wait"] !== true) return result;
    return await awaitEnd(session.engine, result.job);
  });
  if (answer.kind === "ended") return printEnd(invocation, answer);
  if (answer.kind !== "accepted") return refused(invocation, answer);
  terminal.print(idOrJson(invocation, answer.job));
  return EXIT.done;
}

async function requestFrom(invocation: Invocation, task: string): Promise<SubmitRequest> {
  const input = await inputFrom(invocation);
  const requestId = textOption(invocation, "requestId");
  const priority = numberFrom(invocation, "priority");
  const maxAttempts = numberFrom(invocation, "maxAttempts");
  const delay = textOption(invocation, "delay");
  const delayMs = delay === undefined ? undefined : parseDuration(delay, "s");
  if (delay !== undefined && delayMs === undefined)
    throw misuse(`--delay: ${JSON.stringify(delay)} is no duration; expected seconds, or "5m"`);
  return {
    task,
    input,
    ...(requestId === undefined ? {} : { requestId }),
    ...(priority === undefined ? {} : { priority }),
    ...(maxAttempts === undefined ? {} : { maxAttempts }),
    ...(delayMs === undefined ? {} : { delayMs }),
  };
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

/** Without the task's file nothing is known about its input: the worker checks it before it runs. */
async function tasksFor(name: string, file: string | undefined): Promise<RegisteredTask[]> {
  if (file !== undefined) return loadTasks([file]);
  return [
    {
      name,
      description: null,
      isolation: "inline",
      timeoutMs: null,
      maxAttempts: 1,
      version: FIRST_VERSION,
      file: null,
      definition: { run: () => null },
    },
  ];
}

async function warnWhenNobodyWorks(
  { ledger }: Session,
  { config, terminal }: Invocation,
  task: string,
): Promise<void> {
  const nowMs = systemClock.nowMs();
  const works = (await ledger.workers()).some(
    (worker) =>
      worker.tasks.includes(task) && nowMs - worker.lastHeartbeatMs <= config.workerTimeoutMs,
  );
  if (!works) terminal.complain(`no worker runs task ${task} now; the job waits until one does`);
}

function idOrJson({ json }: Invocation, job: Job): string {
  return json ? jobJson(job, systemClock.nowMs()) : formatJobId(job.jobId);
}

function printEnd(invocation: Invocation, ended: Ended): ExitCode {
  return endOf(invocation, ended, "data");
}

function refused(
  { terminal }: Invocation,
  refusal: Exclude<SubmitResult, { kind: "accepted" }>,
): ExitCode {
  switch (refusal.kind) {
    case "unknown_task":
      throw misuse(`unknown task ${refusal.task}; known: ${refusal.known.join(", ")}`);
    case "invalid":
      throw misuse(
        `invalid input: ${refusal.issues.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ")}`,
      );
    case "full":
      terminal.complain(`async queue full (max ${refusal.limit})`);
      return EXIT.failed;
    case "not_ready":
      terminal.complain(`not ready: ${refusal.reason}`);
      return EXIT.failed;
    default:
      return refusal satisfies never;
  }
}
