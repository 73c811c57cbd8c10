import { expect, test } from "vitest";
import { VirtualClock } from "../../test/virtual-clock.js";
import { SkippingClock } from "./skipping-clock.js";

test("a clock that can skip fires what falls into the skip, in order, and the rest in its time", async () => {
  const real = new VirtualClock();
  const clock = new SkippingClock(real);
  const startMs = clock.nowMs();
  const fired: string[] = [];
  const at = (name: string, delayMs: number, act?: () => void): (() => void) =>
    clock.timer(delayMs, () => {
      fired.push(`${name} ${String(clock.monotonicMs())}`);
      act?.();
    });
  at("later", 700);
  let cancelNever: () => void = () => undefined;
  at("second", 500);
  at("first", 300, () => {
    cancelNever();
    at("within", 0);
  });
  cancelNever = at("never", 400);
  await real.advance(100);
  clock.skip(500);
  expect(clock.nowMs() - startMs).toBe(600);
  expect(fired).toEqual(["first 600", "second 600"]);
  await real.advance(99);
  expect(fired.slice(2)).toEqual(["within 600"]);
  await real.advance(1);
  expect(fired.slice(3)).toEqual(["later 700"]);
  expect(real.pendingTimers).toBe(0);
});
