import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isUlid } from "../job/id.js";
import { idSource, systemRandom, type Random } from "./random.js";

/** Ids at these times. */
function idsAt(times: readonly number[], random: Random = systemRandom()): string[] {
  let at = 0;
  const next = idSource(
    { nowMs: () => times[at] ?? 0, monotonicMs: () => 0, timer: () => () => undefined },
    random,
  );
  return times.map((_, place) => {
    at = place;
    return next();
  });
}

describe("idSource", () => {
  it("makes ULIDs that only grow, whatever the clock and chance do", () => {
    const edge = fc.constantFrom(0, 0.5, 1 - 2 ** -32);
    fc.assert(
      fc.property(fc.array(fc.nat(1_000), { minLength: 2 }), edge, (times, unit) => {
        const ids = idsAt(times, { unit: () => unit });
        expect(ids.every(isUlid)).toBe(true);
        expect(new Set(ids).size).toBe(ids.length);
        expect([...ids].sort()).toEqual(ids);
      }),
    );
  });

  it("begins with the time, as the specification writes it", () => {
    const [id] = idsAt([1_469_918_176_385], { unit: () => 0 });
    expect(id).toBe("01ARYZ6S410000000000000000");
  });

  it("carries from digit to digit within a millisecond", () => {
    const ids = idsAt(new Array<number>(2_000).fill(1), { unit: () => 0 });
    expect(ids[31]?.slice(-4)).toBe("000Z");
    expect(ids[1_024]?.slice(-4)).toBe("0100");
  });
});
