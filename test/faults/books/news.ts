/** How soon waits heard of ends. Both clocks are this machine's. */
import type { Books } from "./books.js";

/**
 * A connection that swallows is given up after 15 s, a busy machine takes some seconds more, and polls
 * go on for a minute at least (see traffic.ts): news that got lost come later than this.
 */
const NEWS_WITHIN_MS = 45_000;

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
export function* lateNews({ jobs, sightings, emptyPolls }: Books): Generator<string> {
  for (const { accepted, state, askedMs, answeredMs } of sightings) {
    const finishedMs = jobs.get(accepted.jobId)?.finishedAtMs ?? null;
    if (finishedMs === null || answeredMs - Math.max(askedMs, finishedMs) <= NEWS_WITHIN_MS)
      continue;
    yield `a poll of ${accepted.jobId} (${state}) from ${time(askedMs)} to ${time(answeredMs)} heard late of its end at ${time(finishedMs)}`;
  }
  for (const { jobId, askedMs, answeredMs } of emptyPolls) {
    const finishedMs = jobs.get(jobId)?.finishedAtMs ?? null;
    if (finishedMs === null || answeredMs - Math.max(askedMs, finishedMs) <= NEWS_WITHIN_MS)
      continue;
    yield `a poll of ${jobId} from ${time(askedMs)} to ${time(answeredMs)} brought no news of its end at ${time(finishedMs)}`;
  }
}

function time(ms: number): string {
  return new Date(ms).toISOString().slice(11, 23);
}
