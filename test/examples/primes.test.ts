import { expect, it } from "vitest";
import primes from "../../examples/tasks/primes.js";
import { contextOf } from "./context.js";

it.each([
  [0, 0, null],
  [1, 0, null],
  [2, 1, 2],
  [3, 2, 3],
  [4, 2, 3],
  [100, 25, 97],
  [7_919, 1_000, 7_919],
  [524_289, 43_390, 524_287],
  [1_000_000, 78_498, 999_983],
  [10_000_000, 664_579, 9_999_991],
])("up to %i there are %i primes", async (up_to, count, largest) => {
  expect(await primes.run({ up_to }, contextOf())).toEqual({ up_to, primes: count, largest });
});

it("counts around the edge of a segment as trial division does", async () => {
  const isPrime = (n: number): boolean => {
    for (let d = 2; d * d <= n; d += 1) if (n % d === 0) return false;
    return n > 1;
  };
  const edge = 3 + 2 * 2 ** 18;
  const before = await primes.run({ up_to: edge - 20 }, contextOf());
  let { primes: count, largest } = before;
  for (let n = edge - 19; n < edge + 20; n += 1) {
    if (isPrime(n)) {
      count += 1;
      largest = n;
    }
    expect(await primes.run({ up_to: n }, contextOf())).toEqual({
      up_to: n,
      primes: count,
      largest,
    });
  }
});

it("reports progress, and stops within a segment of the signal", () => {
  const stop = new AbortController();
  const seen: unknown[] = [];
  const ctx = contextOf(stop.signal, (value) => {
    seen.push(value);
    if (seen.length === 2) stop.abort(new Error("cancelled"));
  });
  expect(() => primes.run({ up_to: 100_000_000_000 }, ctx)).toThrow("cancelled");
  expect(seen).toEqual([
    { up_to: 524_290, primes: 43_390 },
    { up_to: 1_048_578, primes: expect.any(Number) as number },
  ]);
});
