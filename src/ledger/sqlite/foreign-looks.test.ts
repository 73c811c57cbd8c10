import { expect, test } from "vitest";
import { silentLogger } from "../../runtime/logger.js";
import { VirtualClock } from "../../../test/virtual-clock.js";
import { ForeignLooks } from "./foreign-looks.js";

function setUp(count: number) {
  const clock = new VirtualClock();
  const state = { looks: 0, chunks: [] as number[], fails: false };
  const done = (): Promise<boolean> =>
    state.fails ? Promise.reject(new Error("out of reach")) : Promise.resolve(count <= 500);
  const jobIds = Array.from({ length: count }, (_, n) => String(n));
  const looks = new ForeignLooks({
    watchers: {
      size: count,
      jobIds,
      look: () => {
        state.looks += 1;
        return done();
      },
      lookAt: async (chunk) => {
        state.chunks.push(chunk.length);
        await done();
      },
    },
    clock,
    logger: silentLogger,
  });
  return { clock, looks, state };
}

test("a change is looked at at once; where few are watched that is all", async () => {
  const { clock, looks, state } = setUp(500);
  looks.changed();
  await clock.advance(10_000);
  expect(state).toMatchObject({ looks: 1, chunks: [] });
  expect(clock.pendingTimers).toBe(0);
});

test("where many are watched, each is looked at after the last change, some at a time", async () => {
  const { clock, looks, state } = setUp(1_200);
  looks.changed();
  await clock.advance(99);
  expect(state.chunks).toEqual([500]);
  looks.changed();
  await clock.advance(10_000);
  expect(state).toMatchObject({ looks: 2, chunks: [500, 500, 200, 500, 500, 200] });
  expect(clock.pendingTimers).toBe(0);
});

test("what could not be looked at is looked at later", async () => {
  const { clock, looks, state } = setUp(1);
  state.fails = true;
  looks.changed();
  await clock.advance(60_000);
  // The pauses grow from 50 ms to a second.
  expect(state.chunks.length).toBeGreaterThan(60);
  expect(state.chunks.length).toBeLessThan(70);
  state.fails = false;
  state.chunks = [];
  await clock.advance(10_000);
  expect(state.chunks).toEqual([1]);
  state.fails = true;
  looks.changed();
  await clock.advance(60);
  looks.close();
  expect(clock.pendingTimers).toBe(0);
});
