/** Whether this thread's event loop is at work most of the time, or waits for something to come in. */
import { performance } from "node:perf_hooks";
import type { Clock } from "./clock.js";

/** Long enough that one long turn is not the whole of it, short enough to follow a burst. */
const SPAN_MS = 25;

/** The answer is about the latest span that is over; asking more often costs next to nothing. */
export function busyLoop(clock: Clock): () => boolean {
  let isBusy = false;
  let begin = performance.eventLoopUtilization();
  let beginMs = clock.monotonicMs();
  return () => {
    const nowMs = clock.monotonicMs();
    if (nowMs - beginMs < SPAN_MS) return isBusy;
    const now = performance.eventLoopUtilization();
    isBusy = performance.eventLoopUtilization(now, begin).utilization > 0.5;
    begin = now;
    beginMs = nowMs;
    return isBusy;
  };
}
