/** Where a value stands on an axis, from 0 to 1, and which values have a mark. Pure; never NaN. */

export interface Scale {
  at(value: number): number;
  readonly ticks: readonly number[];
}

const LINEAR_TICKS = 5;

/** From 0 to a round number above all values. */
export function linear(values: readonly number[]): Scale {
  const top = Math.max(0, ...values.filter(Number.isFinite));
  const step = roundStep(top / LINEAR_TICKS);
  const count = Math.max(1, Math.ceil(top / step));
  return {
    at: (value) => value / (step * count),
    ticks: Array.from({ length: count + 1 }, (_, index) => step * index),
  };
}

function roundStep(least: number): number {
  if (least <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5].find((factor) => factor * power >= least) ?? 10);
}

/** From 0 to the last step, with round marks on the way. */
export function even(steps: readonly number[]): Scale {
  const last = Math.max(1, ...steps);
  const { ticks } = linear([last]);
  return { at: (value) => value / last, ticks: ticks.filter((tick) => tick <= last) };
}

/** Powers of `base` around all values above 0. What is below the lowest of them stands there. */
export function logarithmic(values: readonly number[], base: number): Scale {
  const powers = values
    .filter((value) => Number.isFinite(value) && value > 0)
    .map((value) => Math.log(value) / Math.log(base));
  const low = powers.length === 0 ? 0 : Math.floor(Math.min(...powers) + 1e-9);
  const high = powers.length === 0 ? 1 : Math.max(low + 1, Math.ceil(Math.max(...powers) - 1e-9));
  return {
    at: (value) => between(low, high, Math.log(value) / Math.log(base)),
    ticks: Array.from({ length: high - low + 1 }, (_, index) => base ** (low + index)),
  };
}

/** The steps of a benchmark, each with its mark, in powers of ten; 0 stands one below the first. */
export function stepped(steps: readonly number[]): Scale {
  const ticks = [...new Set(steps.filter((step) => step >= 0))].sort((a, b) => a - b);
  const least = ticks.find((step) => step > 0) ?? 1;
  const low = ticks.includes(0) ? least / 10 : least;
  const high = Math.max(low * 2, ticks.at(-1) ?? low);
  return {
    at: (value) => between(Math.log(low), Math.log(high), Math.log(value)),
    ticks,
  };
}

function between(low: number, high: number, value: number): number {
  return (Math.min(Math.max(value, low), high) - low) / (high - low);
}

/** 5000000 is `5 M`, 1000 bytes are `1 kB`. */
export function short(value: number, unit = ""): string {
  for (const [size, prefix] of [
    [1e6, "M"],
    [1e3, "k"],
  ] as const)
    if (value >= size) return `${String(Number((value / size).toPrecision(3)))} ${prefix}${unit}`;
  return `${String(Number(value.toPrecision(3)))}${unit === "" ? "" : ` ${unit}`}`;
}
