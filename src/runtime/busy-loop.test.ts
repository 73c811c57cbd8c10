import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { VirtualClock } from "../../test/virtual-clock.js";
import { busyLoop } from "./busy-loop.js";

const SPAN_MS = 25;

function spin(): number {
  let sum = 0;
  for (let n = 0; n < 3e6; n += 1) sum += Math.sqrt(n);
  return sum;
}

test("a loop that computes is busy, one that waits for a thread is not", async () => {
  const clock = new VirtualClock();
  const isBusy = busyLoop(clock);
  expect(isBusy()).toBe(false);
  expect(spin()).toBeGreaterThan(0);
  expect(isBusy()).toBe(false);
  await clock.advance(SPAN_MS);
  expect(isBusy()).toBe(true);
  await once(new Worker("", { eval: true }), "exit");
  expect(isBusy()).toBe(true);
  await clock.advance(SPAN_MS);
  expect(isBusy()).toBe(false);
});
