import { expect, test } from "vitest";
import type { Clock } from "../../runtime/clock.js";
import { WorkSignal } from "./work-signal.js";

/** Time that stands until it is moved. */
function standing(): { clock: Clock; advance: (ms: number) => void } {
  let nowMs = 0;
  const timers = new Set<{ readonly dueMs: number; readonly fire: () => void }>();
  const clock: Clock = {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    timer(delayMs, fire) {
      const timer = { dueMs: nowMs + delayMs, fire };
      timers.add(timer);
      return () => timers.delete(timer);
    },
  };
  return {
    clock,
    advance(ms) {
      nowMs += ms;
      for (const timer of [...timers])
        if (timer.dueMs <= nowMs && timers.delete(timer)) timer.fire();
    },
  };
}

test("a lone submit takes the message along; those right after it share one", () => {
  let sent = 0;
  const { clock, advance } = standing();
  const signal = new WorkSignal(clock, () => (sent += 1));
  expect(signal.takesAlong()).toBe(true);
  for (let at = 0; at < 10; at += 1) {
    expect(signal.takesAlong()).toBe(false);
    signal.owe();
  }
  expect(sent).toBe(0);
  advance(10);
  expect(sent).toBe(1);
  advance(1_000);
  expect(sent).toBe(1);
  expect(signal.takesAlong()).toBe(true);
});

test("what is owed is sent at once when it is settled, and only once", () => {
  let sent = 0;
  const { clock, advance } = standing();
  const signal = new WorkSignal(clock, () => (sent += 1));
  signal.settle();
  expect(sent).toBe(0);
  expect(signal.takesAlong()).toBe(true);
  signal.owe();
  signal.settle();
  signal.settle();
  advance(100);
  expect(sent).toBe(1);
});
