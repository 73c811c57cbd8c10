/**
 * A moving average that follows larger values at once and smaller ones little by little. It decides
 * how far a worker may reach ahead, where too low a figure costs other workers their jobs, and too
 * high a one only a little speed.
 */

/** Weight of one smaller value: about twenty of them bring the figure from ten down to one. */
const WEIGHT = 1 / 8;

export class CautiousAverage {
  #value: number | null = null;

  /** Null before the first value. */
  get value(): number | null {
    return this.#value;
  }

  add(sample: number): void {
    const value = this.#value;
    this.#value = value === null || sample > value ? sample : value + (sample - value) * WEIGHT;
  }
}
