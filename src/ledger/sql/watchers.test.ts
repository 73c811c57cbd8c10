import { describe, expect, test } from "vitest";
import { settled } from "../../../test/virtual-clock.js";
import { Watchers, type Recent } from "./watchers.js";

function watchersOf(seen: Record<string, number>, chunks: number[] = []): Watchers {
  return new Watchers({
    look: (jobIds) => {
      chunks.push(jobIds.length);
      return Promise.resolve(jobIds.map((jobId) => seen[jobId] ?? -1));
    },
  });
}

test("a look tells all the first time, then only what differs, eviction included", async () => {
  const seen: Record<string, number> = { a: 1, b: 1 };
  const watchers = watchersOf(seen);
  const told: string[] = [];
  for (const jobId of ["a", "b"]) watchers.watch(jobId, () => told.push(jobId));
  await watchers.look();
  expect(told.splice(0)).toEqual(["a", "b"]);
  await watchers.look();
  expect(told.splice(0)).toEqual([]);
  seen["b"] = 2;
  await watchers.look();
  expect(told.splice(0)).toEqual(["b"]);
  delete seen["a"];
  await watchers.look();
  expect(told).toEqual(["a"]);
});

test("a look asked for during a look is made after it, once", async () => {
  const chunks: number[] = [];
  const watchers = watchersOf({ a: 1 }, chunks);
  watchers.watch("a", () => undefined);
  await Promise.all([watchers.look(), watchers.look(), watchers.look()]);
  expect(chunks).toEqual([1, 1]);
});

test("many are looked at in chunks, so that calls pass between", async () => {
  const chunks: number[] = [];
  const watchers = watchersOf({}, chunks);
  for (let index = 0; index < 1_200; index += 1)
    watchers.watch(`job-${String(index)}`, () => undefined);
  await watchers.look();
  expect(chunks).toEqual([500, 500, 200]);
});

describe("where recent changes can be asked for", () => {
  const MANY = 600;
  const RUNNING = 100;
  const ENDED = 9;
  const NOTHING: Recent = { ended: [], running: [], forgotten: false };

  async function many() {
    const seen = new Map(Array.from({ length: MANY }, (_, n) => [`job-${String(n)}`, 1]));
    const looked: string[] = [];
    let recent: Recent | null = null;
    const watchers = new Watchers({
      look: (jobIds) => {
        looked.push(...jobIds);
        return Promise.resolve(jobIds.map((jobId) => seen.get(jobId) ?? -1));
      },
      changes: {
        recent: () => Promise.resolve(recent),
        standing: (look) => (look === RUNNING ? "running" : look === ENDED ? "over" : "queued"),
      },
    });
    const told: string[] = [];
    for (const jobId of seen.keys()) watchers.watch(jobId, () => told.push(jobId), 1);
    // The first look is made as soon as there are many.
    await settled();
    expect(looked.splice(0)).toHaveLength(MANY);
    expect(told).toEqual([]);
    return {
      seen,
      told,
      looked,
      /** @returns who was told, and who had to be looked at. */
      look: async (changes: Recent | null): Promise<[told: string[], looked: string[]]> => {
        recent = changes;
        await watchers.look();
        return [told.splice(0), looked.splice(0)];
      },
      watchers,
    };
  }

  test("only they are told, and no job is looked at that does not have to be", async () => {
    const { look, seen } = await many();
    const ended = [
      ["job-1", ENDED],
      ["elsewhere", ENDED],
    ] as const;
    expect(await look({ ...NOTHING, ended, running: [["job-2", RUNNING]] })).toEqual([
      ["job-1", "job-2"],
      [],
    ]);
    expect(await look({ ...NOTHING, running: [["job-2", RUNNING]] })).toEqual([[], []]);
    // It has not ended and runs no more: it waits again, unless it was forgotten.
    seen.set("job-2", 3);
    expect(await look(NOTHING)).toEqual([["job-2"], ["job-2"]]);
    expect(await look(NOTHING)).toEqual([[], []]);
    // So it is with one that has ended, when some were forgotten.
    seen.delete("job-1");
    expect(await look({ ...NOTHING, forgotten: true })).toEqual([["job-1"], ["job-1"]]);
  });

  test("one of which nothing is known is looked at; what was read by the way is known", async () => {
    const { look, watchers, told } = await many();
    watchers.watch("new", () => told.push("new"));
    watchers.watch("read", () => told.push("read"));
    watchers.saw("read", 1);
    expect(await look(NOTHING)).toEqual([["new"], ["new"]]);
    watchers.saw("read", 1);
    watchers.saw("unwatched", 1);
    expect(told).toEqual([]);
    watchers.saw("read", 2);
    expect(told).toEqual(["read"]);
  });

  test("all are looked at where they can't be told, and where few are watched", async () => {
    const { look, seen } = await many();
    seen.set("job-599", 2);
    const [told, looked] = await look(null);
    expect(told).toEqual(["job-599"]);
    expect(looked).toHaveLength(MANY);
    const few = watchersOf({ a: 1 });
    few.watch("a", () => told.push("a"), 2);
    await few.look();
    expect(told).toEqual(["job-599", "a"]);
  });
});

test("a look that fails does not keep later ones from being made", async () => {
  let fails = true;
  const watchers = new Watchers({
    look: (jobIds) =>
      fails ? Promise.reject(new Error("out of reach")) : Promise.resolve(jobIds.map(() => 1)),
  });
  let told = 0;
  watchers.watch("a", () => (told += 1));
  await expect(watchers.look()).rejects.toThrow("out of reach");
  fails = false;
  await watchers.look();
  expect(told).toBe(1);
});

test("who has left hears nothing, also when it leaves during the telling", () => {
  const watchers = watchersOf({});
  const told: string[] = [];
  const leave = watchers.watch("a", () => told.push("first"));
  watchers.watch("a", () => {
    leave();
    leaveLast();
  });
  const leaveLast = watchers.watch("a", () => told.push("last"));
  watchers.changed("a");
  watchers.changed("a");
  expect(told).toEqual(["first"]);
});

test("who comes during the telling is not told, also when the last one has left", () => {
  const watchers = watchersOf({});
  const told: string[] = [];
  watchers.watch("a", () => {
    leaveLast();
    watchers.watch("a", () => told.push("new"));
  });
  const leaveLast = watchers.watch("a", () => told.push("last"));
  watchers.changed("a");
  expect(told).toEqual([]);
});

test("an own change is told once, and what a look finds after it is no news", async () => {
  const seen: Record<string, number> = { a: 1 };
  const watchers = watchersOf(seen);
  let told = 0;
  watchers.watch("a", () => (told += 1), 1);
  await watchers.look();
  expect(told).toBe(0);
  seen["a"] = 2;
  watchers.changed("a");
  watchers.saw("a", 2);
  await watchers.look();
  expect(told).toBe(1);
});

test("ten thousand that watch one job come and go in no time, and are called in their order", () => {
  const watchers = watchersOf({});
  const told: number[] = [];
  const leave = Array.from({ length: 10_000 }, (_, n) => watchers.watch("a", () => told.push(n)));
  for (const [n, go] of leave.entries()) if (n % 5_000 !== 4_999) go();
  watchers.changed("a");
  expect(told).toEqual([4_999, 9_999]);
  for (const go of leave) go();
  expect(watchers.size).toBe(0);
});
