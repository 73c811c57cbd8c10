import { describe, expect, test } from "vitest";
import { DEFAULT_BACKOFF, delayWithoutJitter, withJitter } from "./retry.js";

describe("delayWithoutJitter", () => {
  test("doubles from the base to the longest pause", () => {
    const backoff = { baseMs: 100, maxMs: 1_000 };
    const delays = [1, 2, 3, 4, 5, 6].map((attempt) => delayWithoutJitter(attempt, backoff));
    expect(delays).toEqual([100, 200, 400, 800, 1_000, 1_000]);
  });

  test("stays finite and bounded for any attempt", () => {
    for (const attempt of [0, -1, 100, 5_000, Number.MAX_SAFE_INTEGER]) {
      const delayMs = delayWithoutJitter(attempt);
      expect(delayMs).toBeGreaterThanOrEqual(DEFAULT_BACKOFF.baseMs);
      expect(delayMs).toBeLessThanOrEqual(DEFAULT_BACKOFF.maxMs);
    }
  });
});

describe("withJitter", () => {
  test("half of the delay is fixed, half is chance", () => {
    expect(withJitter(1_000, 0)).toBe(500);
    expect(withJitter(1_000, 0.5)).toBe(750);
    expect(withJitter(1_000, 0.999)).toBe(1_000);
    expect(withJitter(0, 0.7)).toBe(0);
  });

  test("whole milliseconds", () => {
    for (const unit of [0.1, 0.123, 0.77])
      expect(Number.isInteger(withJitter(333, unit))).toBe(true);
  });
});
