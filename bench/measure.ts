/** Rounds, medians and ratios. A benchmark's figure is the median of its rounds; a ratio compares rounds pair by pair. */

export interface Series {
  readonly name: string;
  readonly unit: string;
  readonly rounds: readonly number[];
}

export interface Row {
  /** The goal's name (`P1`), or empty for a figure without a goal. */
  readonly goal: string;
  readonly what: string;
  readonly product: Series;
  readonly peer: Series | null;
  /** Median of the ratios of the rounds: product / peer. */
  readonly ratio: number | null;
  /** `>= 0.75`; empty where none is set. */
  readonly target: string;
  readonly met: boolean | null;
}

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

export interface Contest {
  readonly goal: string;
  readonly what: string;
  readonly unit: string;
  /** Least ratio product / peer that meets the goal. */
  readonly atLeast: number;
  readonly product: { readonly name: string; run(): Promise<number> };
  readonly peer: { readonly name: string; run(): Promise<number> };
}

/** Runs product and peer in turn, a warm-up first, so that a machine that drifts drifts for both. */
export async function contest(spec: Contest, rounds: number): Promise<Row> {
  const mine: number[] = [];
  const theirs: number[] = [];
  for (let round = -1; round < rounds; round += 1) {
    const peer = await spec.peer.run();
    const product = await spec.product.run();
    if (round < 0) continue;
    theirs.push(peer);
    mine.push(product);
  }
  const ratio = median(mine.map((value, index) => value / (theirs[index] ?? Number.NaN)));
  return {
    goal: spec.goal,
    what: spec.what,
    product: { name: spec.product.name, unit: spec.unit, rounds: mine },
    peer: { name: spec.peer.name, unit: spec.unit, rounds: theirs },
    ratio,
    target: `>= ${String(spec.atLeast)}`,
    met: ratio >= spec.atLeast,
  };
}

export interface Figure {
  readonly goal: string;
  readonly what: string;
  readonly unit: string;
  readonly name: string;
  /** Largest value that meets the goal; left out: reported only. */
  readonly atMost?: number;
  run(): Promise<number>;
}

/** A figure that stands by itself, such as a latency. */
export async function figure(spec: Figure, rounds: number): Promise<Row> {
  const values: number[] = [];
  for (let round = -1; round < rounds; round += 1) {
    const value = await spec.run();
    if (round >= 0) values.push(value);
  }
  return {
    goal: spec.goal,
    what: spec.what,
    product: { name: spec.name, unit: spec.unit, rounds: values },
    peer: null,
    ratio: null,
    target: spec.atMost === undefined ? "" : `<= ${String(spec.atMost)} ${spec.unit}`,
    met: spec.atMost === undefined ? null : median(values) <= spec.atMost,
  };
}

/** Runs `job(i)` for i in [0, count) with `width` under way at a time; answers the rate per second. */
export async function ratePerSecond(
  count: number,
  width: number,
  job: (index: number) => Promise<unknown>,
): Promise<number> {
  let next = 0;
  const began = performance.now();
  await Promise.all(
    Array.from({ length: width }, async () => {
      while (next < count) await job(next++);
    }),
  );
  return (count / (performance.now() - began)) * 1_000;
}
