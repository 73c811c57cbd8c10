import { expect, test } from "vitest";
import { atTurnEnd, turnEnd } from "../../runtime/turn.js";
import { Pace } from "./pace.js";

function scene(loopIsBusy: boolean) {
  const sent: number[] = [];
  const state = { waiting: 0, underWay: 0 };
  const pace: Pace = new Pace({
    isBusy: () => loopIsBusy,
    underWay: () => state.underWay,
    flush: () => {
      if (state.waiting === 0 || !pace.allows()) return;
      sent.push(state.waiting);
      state.underWay += 1;
      state.waiting = 0;
    },
  });
  const call = (): void => {
    state.waiting += 1;
    pace.waits();
  };
  const answer = (): void => {
    state.underWay -= 1;
    pace.answered();
  };
  return { sent, call, answer };
}

test("a waiting loop sends all of a turn, then nothing until it is answered", async () => {
  const { sent, call, answer } = scene(false);
  call();
  await Promise.resolve();
  call();
  expect(sent).toEqual([]);
  await turnEnd();
  expect(sent).toEqual([2]);
  call();
  await turnEnd();
  expect(sent).toEqual([2]);
  answer();
  await turnEnd();
  await turnEnd();
  expect(sent).toEqual([2, 1]);
});

test("a waiting loop sends what answers set off, also at the turn's end, with what waited before", async () => {
  const { sent, call, answer } = scene(false);
  call();
  await turnEnd();
  call();
  answer();
  call();
  atTurnEnd(call);
  await turnEnd();
  expect(sent).toEqual([1]);
  await turnEnd();
  expect(sent).toEqual([1, 3]);
});

test("a busy loop sends at once, and one more while one is under way", async () => {
  const { sent, call, answer } = scene(true);
  call();
  call();
  await Promise.resolve();
  expect(sent).toEqual([2]);
  call();
  await Promise.resolve();
  call();
  await turnEnd();
  expect(sent).toEqual([2, 1]);
  answer();
  expect(sent).toEqual([2, 1, 1]);
});
