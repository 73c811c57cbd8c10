import { describe, expect, test } from "vitest";
import { CautiousAverage } from "./cautious-average.js";
import { claimAhead } from "./claim-ahead.js";

const ahead = (typicalRunMs: number | null, typicalPayloadChars: number | null = 60, slots = 4) =>
  claimAhead({ slots, typicalRunMs, typicalPayloadChars });

describe("how far a worker reaches ahead", () => {
  test("is nothing before anything was measured, and for runs that take their time", () => {
    expect(ahead(null)).toBe(0);
    expect(ahead(0.01, null)).toBe(0);
    expect(ahead(2)).toBe(0);
    expect(ahead(10_000)).toBe(0);
  });

  test("is what runs within ten milliseconds, up to a bound", () => {
    expect(ahead(1)).toBe(40);
    expect(ahead(1, 60, 1)).toBe(10);
    expect(ahead(0.01)).toBe(1_024);
    expect(ahead(0)).toBe(1_024);
  });

  test("is bounded in memory: large payloads are fetched one by one", () => {
    expect(ahead(0.01, 1024 * 1024)).toBe(4);
    expect(ahead(0.01, 16 * 1024 * 1024)).toBe(0);
  });
});

describe("the average behind it", () => {
  test("follows slow runs at once and fast ones little by little", () => {
    const average = new CautiousAverage();
    expect(average.value).toBeNull();
    average.add(0.1);
    average.add(10);
    expect(average.value).toBe(10);
    let fast = 0;
    for (; (average.value ?? 0) >= 2; fast += 1) average.add(0.1);
    expect(fast).toBeGreaterThan(10);
    expect(fast).toBeLessThan(20);
  });
});
