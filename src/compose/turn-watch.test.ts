import { expect, test } from "vitest";
import { TurnWatch } from "./turn-watch.js";

const EVERY_MS = 3_000;

/** Looks that come as they are due, but for how late they are told to be. */
function watching(lookEveryMs = EVERY_MS) {
  let nowMs = 100_000;
  let turns = 0;
  const watch = new TurnWatch(lookEveryMs, nowMs);
  return {
    turn: () => (turns += 1),
    look: (lateMs = 0) => {
      const dueMs = nowMs + lookEveryMs;
      nowMs = dueMs + lateMs;
      return watch.look({ nowMs, dueMs, turns });
    },
  };
}

test("a thread without turns is held up from its last one on", () => {
  const { turn, look } = watching();
  expect(look().moved).toBe(true);
  expect(look()).toEqual({ moved: false, heldUpMs: EVERY_MS });
  expect(look(100)).toEqual({ moved: false, heldUpMs: 2 * EVERY_MS + 100 });
  turn();
  expect(look()).toEqual({ moved: true, heldUpMs: 3 * EVERY_MS + 100 });
  expect(look()).toEqual({ moved: false, heldUpMs: EVERY_MS });
});

test("the time in which the whole process was stopped does not count", () => {
  const { turn, look } = watching();
  look();
  // The main thread wakes up too, and has had no turn yet.
  expect(look(3_600_000)).toEqual({ moved: false, heldUpMs: EVERY_MS });
  turn();
  expect(look()).toEqual({ moved: true, heldUpMs: 2 * EVERY_MS });
  // Stopped while the main thread was held up: what was before and comes after does count.
  expect(look()).toMatchObject({ heldUpMs: EVERY_MS });
  expect(look(3_600_000)).toMatchObject({ heldUpMs: 2 * EVERY_MS });
  expect(look()).toEqual({ moved: false, heldUpMs: 3 * EVERY_MS });
});

test("on a busy machine, where looks are late, a thread that spins is found all the same", () => {
  const { look } = watching(90);
  look();
  expect(look(900)).toEqual({ moved: false, heldUpMs: 990 });
  expect(look(1_100)).toEqual({ moved: false, heldUpMs: 1_080 });
});
