/**
 * What came to a step's log since the last look, for someone who watches a phase that runs elsewhere:
 * whole lines, while more may come. A log keeps its beginning and its end; where it has lost its middle
 * since, what is new is counted from its end, and what nobody saw is told as left out.
 */
import type { StepReport } from "../plan/step-report.js";

const GAP = /^\[\.\.\. \d+ bytes left out \.\.\.\]\n/m;

export class FreshOutput {
  /** The log as far as it was told. */
  #told = "";
  /** Of what the step wrote in all. */
  #toldBytes = 0;

  take({ log, logBytes, state }: Pick<StepReport, "log" | "logBytes" | "state">): string {
    const fresh = log.startsWith(this.#told)
      ? log.slice(this.#told.length)
      : this.#sinceGap(log, logBytes);
    const lines = state === "running" ? fresh.slice(0, fresh.lastIndexOf("\n") + 1) : fresh;
    const later = fresh.slice(lines.length);
    this.#told = log.slice(0, log.length - later.length);
    this.#toldBytes = logBytes - Buffer.byteLength(later);
    return lines;
  }

  #sinceGap(log: string, logBytes: number): string {
    const gap = GAP.exec(log);
    if (gap === null) return log;
    const tail = Buffer.from(log.slice(gap.index + gap[0].length));
    const count = Math.max(0, logBytes - this.#toldBytes);
    return count > tail.length
      ? gap[0] + tail.toString()
      : tail.subarray(tail.length - count).toString();
  }
}
