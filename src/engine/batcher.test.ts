import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { settled, VirtualClock } from "../../test/virtual-clock.js";
import { LedgerError } from "../job/errors.js";
import { Batcher, MAX_WAITING_LISTS } from "./batcher.js";

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
    const batcher = new Batcher(send, new VirtualClock());
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
    const batcher = new Batcher(send, new VirtualClock(), {
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

  describe("whose calls may overlap", () => {
    /** Callers that come back whenever they are answered, and the lengths of the lists they were in. */
    async function rounds(
      callers: number,
      calls: number,
      overlap: () => boolean,
    ): Promise<number[]> {
      const sender = held();
      const batcher = new Batcher(sender.send, new VirtualClock(), { overlap });
      for (let caller = 0; caller < callers; caller += 1) {
        const come = (): void => {
          batcher.push({ item: caller, resolve: come, reject: come });
        };
        come();
      }
      for (let call = 0; call < calls; call += 1) {
        await settled();
        sender.calls[call]?.answer();
      }
      return sender.calls.slice(0, calls).map(({ items }) => items.length);
    }

    test("sends callers in two halves, where there are enough", async () => {
      expect(await rounds(32, 6, () => true)).toEqual([32, 16, 16, 16, 16, 16]);
      expect(await rounds(9, 6, () => true)).toEqual([9, 4, 4, 4, 4, 4]);
      expect(await rounds(6, 4, () => true)).toEqual([6, 6, 6, 6]);
    });

    test("sends all in one list while they may not", async () => {
      let busy = true;
      const lengths = rounds(32, 9, () => busy);
      await settled();
      busy = false;
      expect((await lengths).slice(-3)).toEqual([32, 32, 32]);
    });

    test("does not wait for the end of the turn with a half, nor for the other half", async () => {
      const { calls, send } = held();
      const batcher = new Batcher(send, new VirtualClock(), { overlap: () => true });
      const add = (from: number, to: number): Promise<unknown>[] =>
        Array.from({ length: to - from }, (_, at) => batcher.add(from + at));
      const first = Promise.all(add(0, 8));
      await settled();
      calls[0]?.answer();
      await first;
      const others = add(0, 6);
      expect(calls.map(({ items }) => items.length)).toEqual([8, 4]);
      await settled();
      expect(calls).toHaveLength(2);
      calls[1]?.answer();
      await settled();
      expect(calls.map(({ items }) => items.length)).toEqual([8, 4, 2]);
      calls[2]?.answer();
      expect(await Promise.all(others)).toEqual([0, 10, 20, 30, 40, 50]);
    });
  });

  test("gives an error to each caller of that call, and to no other", async () => {
    const { calls, send } = held();
    const batcher = new Batcher(send, new VirtualClock());
    const failing = Promise.allSettled([batcher.add(1), batcher.add(2)]);
    await settled();
    const later = batcher.add(3);
    calls[0]?.fail(new Error("down"));
    expect((await failing).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    await settled();
    calls[1]?.answer();
    expect(await later).toBe(30);
  });

  test("gives what one caller's answer sets off to that caller alone", async () => {
    const { calls, send } = held();
    const batcher = new Batcher(send, new VirtualClock());
    const fault = new Error("can't take it");
    const got: unknown[] = [];
    for (const item of [1, 2, 3])
      batcher.push({
        item,
        resolve: (result) => {
          if (item === 2) throw fault;
          got.push(result);
        },
        reject: (error) => got.push(error),
      });
    await settled();
    calls[0]?.answer();
    await settled();
    expect(got).toEqual([10, fault, 30]);
  });

  test("F1: has nobody wait for a ledger that did not answer those before", async () => {
    const { calls, send } = held();
    const clock = new VirtualClock();
    const batcher = new Batcher(send, clock, { maxItems: 1 });
    const all = Promise.allSettled([1, 2, 3].map((item) => batcher.add(item)));
    await settled();
    await clock.advance(15_000);
    const away = new LedgerError("ledger_unavailable", "no answer within 15 s");
    calls[0]?.fail(away);
    expect(await all).toEqual(Array(3).fill({ status: "rejected", reason: away }));
    const later = batcher.add(4);
    await settled();
    calls[1]?.answer();
    expect(await later).toBe(40);
    expect(calls.map(({ items }) => items)).toEqual([[1], [4]]);
  });

  test("goes on with the next list when one was cut off at once", async () => {
    const { calls, send } = held();
    const clock = new VirtualClock();
    const batcher = new Batcher(send, clock, { maxItems: 1 });
    const all = Promise.allSettled([1, 2].map((item) => batcher.add(item)));
    await settled();
    await clock.advance(500);
    const cut = new LedgerError("ledger_unavailable", "the connection was cut");
    calls[0]?.fail(cut);
    await settled();
    calls[1]?.answer();
    expect(await all).toEqual([
      { status: "rejected", reason: cut },
      { status: "fulfilled", value: 20 },
    ]);
  });

  test.each([
    { bound: "count", items: MAX_WAITING_LISTS.ofItems * 2, weight: 0 },
    { bound: "weight", items: MAX_WAITING_LISTS.ofWeight, weight: 100 },
  ])("F30: keeps what waits within a bound of $bound", async ({ items, weight }) => {
    const { calls, send } = held();
    const batcher = new Batcher(send, new VirtualClock(), {
      maxItems: 2,
      maxWeight: 100,
      weigh: () => weight,
    });
    const first = batcher.add(0);
    await settled();
    const waiting = Array.from({ length: items }, (_, item) => batcher.add(item));
    await expect(batcher.add(-1)).rejects.toMatchObject({ code: "ledger_unavailable" });
    calls[0]?.answer();
    await first;
    await settled();
    // One list has left: there is room again.
    waiting.push(batcher.add(-2));
    for (let turn = 1; turn <= items + 1; turn += 1) {
      calls[turn]?.answer();
      await settled(2);
    }
    expect((await Promise.all(waiting)).at(-1)).toBe(-20);
  });

  test("fails its callers when the answers don't fit the questions", async () => {
    const batcher = new Batcher<number, number>(() => Promise.resolve([]), new VirtualClock());
    await expect(batcher.add(1)).rejects.toThrow("a list of 1 was answered with 0 results");
  });
});

type Step =
  | { readonly kind: "add" }
  | { readonly kind: "load"; readonly overlap: boolean }
  | { readonly kind: "end"; readonly which: number; readonly how: How };
type How = "answer" | "fail" | "cut" | "hung";

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.constant<Step>({ kind: "add" }) },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant("load" as const), overlap: fc.boolean() }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant("end" as const),
        which: fc.nat(3),
        how: fc.constantFrom<How>("answer", "answer", "fail", "cut", "hung"),
      }),
    },
  ),
  { maxLength: 90 },
);

test("whatever happens, each item is answered once, lists are in order, and no more are under way than allowed", async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (all) => {
      let overlap = false;
      let everOverlapped = false;
      const { calls, send } = held();
      const open = new Set<number>();
      const clock = new VirtualClock();
      const batcher = new Batcher(send, clock, { maxItems: 5, overlap: () => overlap });
      const answered = new Map<number, "resolved" | "rejected">();
      const answer = (item: number, how: "resolved" | "rejected"): void => {
        expect(answered.has(item)).toBe(false);
        answered.set(item, how);
      };
      let added = 0;
      let seen = 0;
      const turn = async (): Promise<void> => {
        await settled(8);
        for (; seen < calls.length; seen += 1) open.add(seen);
        expect(open.size).toBeLessThanOrEqual(everOverlapped ? 2 : 1);
      };
      const end = async (call: number, how: How): Promise<void> => {
        open.delete(call);
        if (how === "hung") await clock.advance(15_000);
        if (how === "answer") calls[call]?.answer();
        else
          calls[call]?.fail(
            how === "fail" ? new Error("broken") : new LedgerError("ledger_unavailable", "away"),
          );
        await turn();
      };
      for (const step of all) {
        if (step.kind === "load") {
          overlap = step.overlap;
          everOverlapped ||= overlap;
          continue;
        }
        if (step.kind === "add") {
          const item = (added += 1);
          batcher.push({
            item,
            resolve: (result) => {
              answer(item, result === item * 10 ? "resolved" : "rejected");
            },
            reject: () => {
              answer(item, "rejected");
            },
          });
          if (added % 2 === 0) await turn();
          continue;
        }
        const call = [...open][step.which % Math.max(1, open.size)];
        if (call !== undefined) await end(call, step.how);
      }
      await turn();
      while (open.size > 0) for (const call of [...open]) await end(call, "answer");
      expect([...answered.keys()].sort((a, b) => a - b)).toEqual(
        Array.from({ length: added }, (_, index) => index + 1),
      );
      const sent = calls.flatMap(({ items }) => items);
      expect(sent).toEqual([...new Set(sent)].sort((a, b) => a - b));
      const ofAnswered = [...answered].filter(([, how]) => how === "resolved");
      expect(ofAnswered.every(([item]) => sent.includes(item))).toBe(true);
    }),
    { numRuns: 60 },
  );
});
