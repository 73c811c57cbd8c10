import { expect, test } from "vitest";
import { Watchers } from "./watchers.js";

function watchersOf(seen: Record<string, number>, chunks: number[] = []): Watchers {
  return new Watchers((jobIds) => {
    chunks.push(jobIds.length);
    return Promise.resolve(jobIds.map((jobId) => seen[jobId] ?? -1));
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

test("a look that fails does not keep later ones from being made", async () => {
  let fails = true;
  const watchers = new Watchers((jobIds) =>
    fails ? Promise.reject(new Error("out of reach")) : Promise.resolve(jobIds.map(() => 1)),
  );
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
