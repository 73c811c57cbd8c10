import { expect, test } from "vitest";
import { Stop } from "./stop.js";

const REASON = { name: "AbortError", message: "cancelled" };

test("the signal says why, whether it was made before or after", () => {
  const before = new Stop();
  const early = before.signal;
  const after = new Stop();
  for (const stop of [before, after]) {
    expect(stop.isAsked).toBe(false);
    stop.throwIfAsked();
    stop.ask("cancelled");
    stop.ask("again");
    expect(stop.isAsked).toBe(true);
    expect(() => {
      stop.throwIfAsked();
    }).toThrow(expect.objectContaining(REASON) as Error);
    expect(stop.signal.aborted).toBe(true);
    expect(stop.signal.reason).toMatchObject(REASON);
  }
  expect(before.signal).toBe(early);
});

test("the signal is asked where there is one: it may know more", () => {
  const stop = new Stop();
  Object.defineProperty(stop.signal, "aborted", { get: () => true });
  expect(stop.isAsked).toBe(true);
});
