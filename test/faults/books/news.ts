/** How soon waits heard of ends. Both clocks are this machine's. */
import type { Books } from "./books.js";

/** For each wait that ended: from the job's end, or the poll's begin if that was later, to the answer, ms; ascending. */
export function newsDelaysMs({ sightings, jobs }: Books): number[] {
  return sightings
    .flatMap(({ accepted, askedMs, answeredMs }) => {
      const finishedMs = jobs.get(accepted.jobId)?.finishedAtMs ?? null;
      return finishedMs === null ? [] : [Math.max(0, answeredMs - Math.max(askedMs, finishedMs))];
    })
    .sort((a, b) => a - b);
}

/** No wait heard late, and none was sent away although its job had ended. */
export function* lateNews({ jobs, sightings, emptyPolls, limits }: Books): Generator<string> {
  for (const { accepted, state, askedMs, answeredMs } of sightings) {
    const finishedMs = jobs.get(accepted.jobId)?.finishedAtMs ?? null;
    if (finishedMs === null || answeredMs - Math.max(askedMs, finishedMs) <= limits.newsMs)
      continue;
    yield `a poll of ${accepted.jobId} (${state}) from ${time(askedMs)} to ${time(answeredMs)} heard late of its end at ${time(finishedMs)}`;
  }
  for (const { jobId, askedMs, answeredMs } of emptyPolls) {
    const finishedMs = jobs.get(jobId)?.finishedAtMs ?? null;
    if (finishedMs === null || answeredMs - Math.max(askedMs, finishedMs) <= limits.newsMs)
      continue;
    yield `a poll of ${jobId} from ${time(askedMs)} to ${time(answeredMs)} brought no news of its end at ${time(finishedMs)}`;
  }
}

function time(ms: number): string {
  return new Date(ms).toISOString().slice(11, 23);
}
