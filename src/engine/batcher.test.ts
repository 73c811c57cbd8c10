import { describe, expect, test } from "vitest";
import { settled } from "../../test/virtual-clock.js";
import { Batcher } from "./batcher.js";

/** A sender whose calls the test answers. */
function held() {
  const calls: { items: readonly number[]; answer: () => void; fail: (error: Error) => void }[] =
    [];
  const send = (items: readonly number[]): Promise<readonly number[]> =>
    new Promise((resolve, reject) => {
      const answer = (): void => {
        resolve(items.map((item) => item * 10));
      };
      calls.push({ items, answer, fail: reject });
    });
  return { calls, send };
}

describe("a batcher", () => {
  test("sends what came in one turn together, and what comes meanwhile with the next call", async () => {
    const { calls, send } = held();
    const batcher = new Batcher(send);
    const first = Promise.all([batcher.add(1), batcher.add(2)]);
    await settled();
    const second = Promise.all([batcher.add(3), batcher.add(4)]);
    await settled();
    expect(calls.map(({ items }) => items)).toEqual([[1, 2]]);
    calls[0]?.answer();
    expect(await first).toEqual([10, 20]);
    await settled();
    expect(calls.map(({ items }) => items)).toEqual([
      [1, 2],
      [3, 4],
    ]);
    calls[1]?.answer();
    expect(await second).toEqual([30, 40]);
  });

  test("keeps its lists within count and weight, and lets a heavy item go alone", async () => {
    const { calls, send } = held();
    const batcher = new Batcher(send, {
      maxItems: 3,
      maxWeight: 10,
      weigh: (item: number) => item,
    });
    const all = Promise.all([1, 2, 3, 4, 5, 6, 99, 1].map((item) => batcher.add(item)));
    for (let turn = 0; turn < 10; turn += 1) {
      await settled();
      calls[turn]?.answer();
    }
    expect(await all).toEqual([10, 20, 30, 40, 50, 60, 990, 10]);
    expect(calls.map(({ items }) => items)).toEqual([[1, 2, 3], [4, 5], [6], [99], [1]]);
  });

  test("gives an error to each caller of that call, and to no other", async () => {
    const { calls, send } = held();
    const batcher = new Batcher(send);
    const failing = Promise.allSettled([batcher.add(1), batcher.add(2)]);
    await settled();
    const later = batcher.add(3);
    calls[0]?.fail(new Error("down"));
    expect((await failing).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    await settled();
    calls[1]?.answer();
    expect(await later).toBe(30);
  });

  test("fails its callers when the answers don't fit the questions", async () => {
    const batcher = new Batcher<number, number>(() => Promise.resolve([]));
    await expect(batcher.add(1)).rejects.toThrow("a list of 1 was answered with 0 results");
  });
});
