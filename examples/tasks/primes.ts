/**
 * Counts the primes up to a number with a segmented sieve of Eratosthenes: a loop that keeps one
 * core busy for as long as it is asked to. In a thread it blocks nothing but itself.
 *
 * Asking the signal between segments is all it takes to be stoppable, though the loop never yields:
 * in a thread the signal looks for news when it is asked. A loop that never asks is killed with its
 * thread when the grace period is over.
 */
import { task } from "jobtable";
import { z } from "zod";

/** Odd numbers per segment: one byte each, so that a segment fits into a core's own cache. */
const SEGMENT = 1 << 18;

export default task({
  name: "primes",
  description: "Counts the primes up to a number.",
  isolation: "thread",
  input: z.object({
    up_to: z.int().min(0).max(100_000_000_000).meta({ description: "at most 100 billion" }),
  }),
  output: z.object({ up_to: z.int(), primes: z.int(), largest: z.int().nullable() }),
  run({ up_to }, ctx) {
    if (up_to < 2) return { up_to, primes: 0, largest: null };
    const base = oddPrimesUpTo(Math.floor(Math.sqrt(up_to)));
    let primes = 1;
    let largest = 2;
    for (let low = 3; low <= up_to; low += 2 * SEGMENT) {
      const sieve = sieveSegment(low, Math.min(up_to, low + 2 * SEGMENT - 1), base);
      for (const composite of sieve) if (composite === 0) primes += 1;
      const last = sieve.lastIndexOf(0);
      if (last >= 0) largest = low + 2 * last;
      ctx.progress({ up_to: Math.min(up_to, low + 2 * SEGMENT - 1), primes });
      ctx.signal.throwIfAborted();
    }
    return { up_to, primes, largest };
  },
});

/** @returns one byte for each odd number from `low` (odd) to `high`: 0 where it is prime. */
function sieveSegment(low: number, high: number, base: readonly number[]): Uint8Array {
  const sieve = new Uint8Array(Math.floor((high - low) / 2) + 1);
  for (const prime of base) {
    const square = prime * prime;
    if (square > high) break;
    const first = Math.ceil(low / prime) * prime;
    const start = Math.max(square, first % 2 === 0 ? first + prime : first);
    for (let at = (start - low) / 2; at < sieve.length; at += prime) sieve[at] = 1;
  }
  return sieve;
}

function oddPrimesUpTo(limit: number): number[] {
  const composite = new Uint8Array(limit + 1);
  const primes: number[] = [];
  for (let n = 3; n <= limit; n += 2) {
    if (composite[n] === 1) continue;
    primes.push(n);
    for (let multiple = n * n; multiple <= limit; multiple += 2 * n) composite[multiple] = 1;
  }
  return primes;
}
