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
export function* lateNews(books: Books): Generator<string> {
  const { jobs, emptyPolls, newsWithinMs } = books;
  const slowest = newsDelaysMs(books).at(-1) ?? 0;
  if (slowest > newsWithinMs)
    yield `a wait heard of its job's end after ${String(slowest)} ms (at most ${String(newsWithinMs)})`;
  for (const { jobId, askedMs, answeredMs } of emptyPolls) {
    const finishedMs = jobs.get(jobId)?.finishedAtMs ?? null;
    if (finishedMs !== null && answeredMs - Math.max(askedMs, finishedMs) > newsWithinMs)
      yield `a poll of ${jobId} ended without news ${String(answeredMs - finishedMs)} ms after the job did`;
  }
}
