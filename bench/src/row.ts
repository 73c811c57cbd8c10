/**
 * What a benchmark reports. Product and peers run in turn, round by round, a warm-up first, so that a
 * machine that drifts drifts for all; a ratio compares rounds pair by pair, and its median counts.
 */
import { median } from "./measure.js";

export interface Series {
  readonly name: string;
  readonly rounds: readonly number[];
  /** Of a step of something that grows: its place in a plot. */
  readonly at?: Step;
  /** Of a figure that was taken again and again: its rounds are the points of a line. */
  readonly along?: Along;
}

export interface Along {
  readonly line: string;
  /** From one round to the next, and from the start to the first; the unit is the plot's. */
  readonly every: number;
}

export interface Step {
  readonly line: string;
  readonly x: number;
}

/** A bound on the ratio product / peer, or on the product's own figure where there is no peer. */
export type Target = { readonly atLeast: number } | { readonly atMost: number };

export interface Row {
  readonly what: string;
  readonly unit: string;
  readonly product: Series;
  readonly peer: Series | null;
  /** Product / peer, round by round; empty without a peer. */
  readonly ratios: readonly number[];
  readonly target: Target | null;
  /** Null without a target. */
  readonly met: boolean | null;
}

export interface Runner {
  readonly name: string;
  run(): Promise<number>;
}

export interface Rival extends Runner {
  /** Left out: reported only. */
  readonly target?: Target;
}

export interface Contest {
  readonly what: string;
  readonly unit: string;
  readonly product: Runner;
  readonly peers: readonly Rival[];
}

export function meets(value: number, target: Target): boolean {
  return "atLeast" in target ? value >= target.atLeast : value <= target.atMost;
}

/**
 * Runs all in turn, a warm-up that does not count and then `rounds` times; answers what each gave,
 * round by round. A single round is to see that all runs: it has no warm-up.
 */
export async function inTurn<Value>(
  rounds: number,
  runs: readonly (() => Promise<Value>)[],
): Promise<Value[][]> {
  const values = runs.map((): Value[] => []);
  for (let round = rounds > 1 ? -1 : 0; round < rounds; round += 1)
    for (const [index, run] of runs.entries()) {
      const value = await run();
      if (round >= 0) values[index]?.push(value);
    }
  return values;
}

/** @returns a row for each peer. */
export async function contest(spec: Contest, rounds: number): Promise<Row[]> {
  const { product, peers } = spec;
  const [mine = [], ...theirs] = await inTurn(rounds, [
    () => product.run(),
    ...peers.map((peer) => () => peer.run()),
  ]);
  const series = { name: product.name, rounds: mine };
  return peers.map(({ name, target }, index) =>
    versus(spec, series, { name, rounds: theirs[index] ?? [] }, target),
  );
}

/** A row of figures that were taken already. */
export function versus(
  { what, unit }: { readonly what: string; readonly unit: string },
  product: Series,
  peer: Series,
  target: Target | undefined,
): Row {
  const ratios = product.rounds.map((value, index) => value / (peer.rounds[index] ?? Number.NaN));
  const met = target === undefined ? null : meets(median(ratios), target);
  return { what, unit, product, peer, ratios, target: target ?? null, met };
}

/** A row of a figure that stands by itself. */
export function figure({
  what,
  unit,
  series,
  target,
}: {
  readonly what: string;
  readonly unit: string;
  readonly series: Series;
  readonly target?: Target;
}): Row {
  const met = target === undefined ? null : meets(median(series.rounds), target);
  return {
    what,
    unit,
    product: series,
    peer: null,
    ratios: [],
    target: target ?? null,
    met,
  };
}
