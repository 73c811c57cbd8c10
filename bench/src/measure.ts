/** Medians, percentiles and rates. Pure but for the clock of `ratePerSecond`. */

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2;
}

/** @param share 0.5 for the median, 0.99 for p99. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

/** Milliseconds of a clock that all processes of this machine share. */
export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Milliseconds since the Unix epoch, with a fraction: to compare with times that a store recorded. */
export function epochMs(): number {
  return performance.timeOrigin + performance.now();
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Looks again until `look` is true; what can't be awaited is polled. @throws when `limitMs` have passed. */
export async function until(
  what: string,
  look: () => boolean | Promise<boolean>,
  { everyMs = 2, limitMs = 120_000 } = {},
): Promise<void> {
  const end = nowMs() + limitMs;
  while (!(await look())) {
    if (nowMs() > end) throw new Error(`${what}: not within ${String(limitMs / 1_000)} s`);
    await pause(everyMs);
  }
}
