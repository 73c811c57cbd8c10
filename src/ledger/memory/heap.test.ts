import fc from "fast-check";
import { expect, test } from "vitest";
import { Heap, type HeapEntry } from "./heap.js";

const act = fc.oneof(
  fc.record({ kind: fc.constant("push" as const), value: fc.integer({ min: 0, max: 50 }) }),
  fc.record({ kind: fc.constant("remove" as const), at: fc.nat() }),
  fc.record({ kind: fc.constant("removeFirst" as const) }),
);

test("whatever is pushed and taken out, the smallest is in front and the size is right", () => {
  fc.assert(
    fc.property(fc.array(act, { maxLength: 60, size: "max" }), (acts) => {
      const heap = new Heap<number>((a, b) => a < b);
      let entries: HeapEntry<number>[] = [];
      const remove = (entry: HeapEntry<number> | undefined): void => {
        if (entry === undefined) return;
        heap.remove(entry);
        heap.remove(entry);
        entries = entries.filter((other) => other !== entry);
      };
      for (const one of acts) {
        if (one.kind === "push") entries.push(heap.push(one.value));
        else if (one.kind === "remove") remove(entries[one.at % Math.max(1, entries.length)]);
        else remove(entries.find((entry) => entry.place === 0));
        const values = entries.map((entry) => entry.value);
        expect(heap.size).toBe(values.length);
        expect(heap.peek()).toBe(values.length === 0 ? undefined : Math.min(...values));
        const inPlace = [...heap.values()];
        for (const [at, value] of inPlace.entries())
          expect(inPlace[(at - 1) >> 1] ?? value).toBeLessThanOrEqual(value);
        expect(inPlace.sort()).toEqual(values.sort());
      }
    }),
    { seed: 1, numRuns: 60 },
  );
});

test("it gives its values back in order", () => {
  const heap = new Heap<number>((a, b) => a < b);
  const entries = Array.from({ length: 500 }, (_, at) => heap.push((at * 7_919) % 503));
  const out: number[] = [];
  for (;;) {
    const first = entries.find((entry) => entry.place === 0);
    if (first === undefined) break;
    out.push(first.value);
    heap.remove(first);
  }
  expect(out).toHaveLength(500);
  expect(out).toEqual([...out].sort((a, b) => a - b));
});

test("what fills a gap moves up where it is smaller than what is above the gap", () => {
  const heap = new Heap<number>((a, b) => a < b);
  // In this order each value stays where it is put; 4, the last, goes to 11's place, below 10.
  const entries = [1, 10, 2, 11, 12, 3, 4].map((value) => heap.push(value));
  const [, ten, , eleven, , , four] = entries;
  if (eleven === undefined) throw new Error("the heap is empty");
  heap.remove(eleven);
  expect([four?.place, ten?.place, eleven.place]).toEqual([1, 3, -1]);
});
