/** All that must hold after a run, and what does not. */
import type { Books } from "./books.js";
import {
  lostJobs,
  unfinishedJobs,
  wrongDelays,
  wrongEnds,
  wrongResults,
  wrongSightings,
  wrongTrails,
} from "./ends.js";
import { lateNews } from "./news.js";
import { crowdedWorkers, endsWithoutRuns, oddRuns } from "./runs.js";

const CHECKS: readonly ((books: Books) => Iterable<string>)[] = [
  lostJobs,
  wrongDelays,
  unfinishedJobs,
  wrongEnds,
  wrongTrails,
  wrongResults,
  wrongSightings,
  oddRuns,
  crowdedWorkers,
  endsWithoutRuns,
  lateNews,
];

/** One line for everything that does not balance; none when all does. */
export function balance(books: Books): string[] {
  return CHECKS.flatMap((check) => [...check(books)]);
}
