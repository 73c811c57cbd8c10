/**
 * What a benchmark reports. Product and peers run in turn, round by round, a warm-up first, so that a
 * machine that drifts drifts for all; a ratio compares rounds pair by pair, and its median counts.
 */
import { median } from "./measure.js";

export interface Series {
  readonly name: string;
  readonly rounds: readonly number[];
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
  /** Bound on the product's own figure. */
  readonly target?: Target;
}

export function meets(value: number, target: Target): boolean {
  return "atLeast" in target ? value >= target.atLeast : value <= target.atMost;
}

/** @returns a row for each peer; one for the product alone where there is none, or it has a bound of its own. */
export async function contest(spec: Contest, rounds: number): Promise<Row[]> {
  const mine: number[] = [];
  const theirs = spec.peers.map((): number[] => []);
  for (let round = -1; round < rounds; round += 1) {
    const peers: number[] = [];
    for (const peer of spec.peers) peers.push(await peer.run());
    const product = await spec.product.run();
    if (round < 0) continue;
    mine.push(product);
    peers.forEach((value, index) => theirs[index]?.push(value));
  }
  const product = { name: spec.product.name, rounds: mine };
  const rows = spec.peers.map((peer, index) =>
    versus(spec, product, { name: peer.name, rounds: theirs[index] ?? [] }, peer.target),
  );
  return rows.length > 0 && spec.target === undefined
    ? rows
    : [figure({ ...spec, series: product }), ...rows];
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
