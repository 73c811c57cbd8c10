/**
 * What a command still does about a job that it has recorded. Whatever happens to it then, the id is
 * told: without it nobody finds the job, and who submits once more makes a second one.
 */
import type { Jobs } from "../client/jobs.js";
import { systemClock } from "../runtime/clock.js";
import { patiently } from "./follow.js";
import { jobJsonText } from "./job-text.js";
import type { Terminal } from "./terminal.js";

/** Names the job where `work` fails, or a signal ends the process before it is done. */
export async function orNamed<Answer>(
  jobId: string,
  terminal: Terminal,
  work: () => Promise<Answer>,
): Promise<Answer> {
  const words = `the job was recorded and goes on: ${jobId}; see jobtable jobs wait and jobs result`;
  const forget = terminal.lastWords(words);
  try {
    return await work();
  } catch (error) {
    terminal.complain(words);
    throw error;
  } finally {
    forget();
  }
}

/** For `--json`: the job as it is now; its id where it has been forgotten already. */
export async function recordedText(jobs: Jobs, jobId: string): Promise<string> {
  const job = await patiently(systemClock, () => jobs.get(jobId));
  return job === null ? jobId : jobJsonText(job);
}
