/** Telling how a job ended: the result on standard output, a failure on standard error. */
import type { Jobs } from "../client/jobs.js";
import { hasEnded, type JobView } from "../client/replies.js";
import { systemClock } from "../runtime/clock.js";
import { EXIT, type ExitCode } from "./exit-code.js";
import { patiently } from "./follow.js";
import { indentJson, safeJson } from "./text.js";
import type { Invocation } from "./verb.js";

export interface Ended {
  /** Not ended when the wait's time passed first. */
  readonly job: JobView;
  /** Null unless it is done. */
  readonly envelopeJson: string | null;
}

/** The job with its result, where it has one. */
export async function withResult(jobs: Jobs, job: JobView): Promise<Ended> {
  if (job.state !== "done") return { job, envelopeJson: null };
  const answer = await patiently(systemClock, () => jobs.result(job.job_id));
  return { job, envelopeJson: answer.kind === "done" ? answer.envelopeJson : null };
}

/**
 * @param shape what `--json` prints: `data`: the job with its result as `data`; `envelope`: the
 *   result as the HTTP API gives it, where there is one.
 */
export function endOf(
  { json, terminal }: Invocation,
  { job, envelopeJson }: Ended,
  shape: "data" | "envelope",
): ExitCode {
  if (json && shape === "data") {
    const data = envelopeJson === null ? {} : { data: dataOf(envelopeJson) };
    terminal.print(safeJson(JSON.stringify({ ...job, ...data })));
  } else if (envelopeJson !== null)
    terminal.print(
      json ? safeJson(envelopeJson) : indentJson(JSON.stringify(dataOf(envelopeJson))),
    );
  if (job.state === "done") return EXIT.done;
  if (!json || shape === "envelope") terminal.complain(describe(job));
  return EXIT.failed;
}

function dataOf(envelopeJson: string): unknown {
  const { data } = JSON.parse(envelopeJson) as { data: unknown };
  return data;
}

function describe(job: JobView): string {
  const why = job.error ?? job.reason;
  const state = hasEnded(job) ? job.state : `not finished (${job.state})`;
  return `job ${job.job_id} ${state}${why === undefined ? "" : `: ${why}`}`;
}
