/** Waiting for a job's end, and telling it: the result on standard output, a failure on standard error. */
import type { Engine } from "../engine/api.js";
import { jobJson, STATES, successJson } from "../http/wire.js";
import { formatJobId } from "../job/id.js";
import type { Job } from "../job/job.js";
import { isTerminal } from "../job/state.js";
import { systemClock } from "../runtime/clock.js";
import { EXIT, type ExitCode } from "./exit-code.js";
import { indentJson } from "./text.js";
import type { Invocation } from "./verb.js";

export interface Ended {
  readonly kind: "ended";
  /** Not terminal when the wait's time passed first. */
  readonly job: Job;
  /** Null unless it succeeded. */
  readonly resultJson: string | null;
}

/** A wait without a limit is many of these. */
const ONE_WAIT_MS = 3_600_000;

/** Waits until the job is terminal, or has been forgotten. */
export async function awaitEnd(engine: Engine, job: Job): Promise<Ended> {
  let last = job;
  while (!isTerminal(last.status)) {
    const seen = await engine.wait(job.jobId, { timeoutMs: ONE_WAIT_MS, until: "end" });
    if (seen === null) break;
    last = seen;
  }
  return withResult(engine, last);
}

export async function withResult(engine: Engine, job: Job): Promise<Ended> {
  const result = job.status === "succeeded" ? await engine.result(job.jobId) : null;
  return { kind: "ended", job: result?.job ?? job, resultJson: result?.resultJson ?? null };
}

/**
 * @param shape what `--json` prints: `data`: the job with its result as `data`; `envelope`: the
 *   result as the HTTP API gives it, where there is one.
 */
export function endOf(
  { json, terminal }: Invocation,
  { job, resultJson }: Ended,
  shape: "data" | "envelope",
): ExitCode {
  if (json && shape === "data") {
    const snapshot = jobJson(job, systemClock.nowMs());
    terminal.print(
      resultJson === null ? snapshot : `${snapshot.slice(0, -1)},"data":${resultJson}}`,
    );
  } else if (resultJson !== null)
    terminal.print(json ? successJson(job.requestId, resultJson) : indentJson(resultJson));
  if (job.status === "succeeded") return EXIT.done;
  if (!json || shape === "envelope") terminal.complain(describe(job));
  return EXIT.failed;
}

function describe(job: Job): string {
  const why = job.errorMessage === null ? "" : `: ${job.errorMessage}`;
  const state = isTerminal(job.status)
    ? STATES[job.status]
    : `not finished (${STATES[job.status]})`;
  return `job ${formatJobId(job.jobId)} ${state}${why}`;
}
