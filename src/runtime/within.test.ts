import { describe, expect, test } from "vitest";
import { VirtualClock } from "../../test/virtual-clock.js";
import { within } from "./within.js";

const never = new Promise<never>(() => undefined);

describe("a promise with a deadline", () => {
  test("comes to what the work comes to, and leaves no timer", async () => {
    const clock = new VirtualClock();
    expect(await within(clock, 5, Promise.resolve(1), () => "late")).toBe(1);
    await expect(
      within(clock, 5, Promise.reject(new RangeError("work")), () => "late"),
    ).rejects.toThrow("work");
    expect(clock.pendingTimers).toBe(0);
  });

  test("gives what there is for late ones, a failure too, and drops what comes after", async () => {
    const clock = new VirtualClock();
    const late = within(clock, 5, never, () => "late");
    const failed = within(clock, 5, never, () => Promise.reject(new RangeError("too slow")));
    const dropped = within(clock, 5, clockwork(clock, 9), () => null);
    const seen = Promise.allSettled([late, failed, dropped]);
    await clock.advance(10);
    expect(await seen).toEqual([
      { status: "fulfilled", value: "late" },
      { status: "rejected", reason: new RangeError("too slow") },
      { status: "fulfilled", value: null },
    ]);
    expect(clock.pendingTimers).toBe(0);
  });
});

function clockwork(clock: VirtualClock, ms: number): Promise<never> {
  return new Promise((_, reject) => {
    clock.timer(ms, () => {
      reject(new Error("dropped"));
    });
  });
}
