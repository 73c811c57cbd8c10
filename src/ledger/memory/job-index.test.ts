import { expect, test } from "vitest";
import { newlyQueued } from "../../job/transition.js";
import type { Entry } from "./entry.js";
import { FinishedLine } from "./finished-line.js";
import { JobIndex } from "./job-index.js";

function entry(number: number): Entry {
  const jobId = String(number).padStart(26, "0");
  const job = newlyQueued({ jobId, task: "echo", schemaVersion: 1, payloadJson: "{}" }, 0);
  return { job, payloadJson: "{}", fingerprint: null, resultJson: "1", evicted: false };
}

function ids(index: JobIndex, cursor?: Entry): number[] {
  return [...index.newestBelow(cursor?.job.jobId)].map(({ job }) => Number(job.jobId));
}

test("newest first, in whatever order they come", () => {
  const index = new JobIndex();
  for (const number of [5, 1, 9, 7, 3]) index.add(entry(number));
  expect(ids(index)).toEqual([9, 7, 5, 3, 1]);
  expect(ids(index, entry(7))).toEqual([5, 3, 1]);
  expect(ids(index, entry(6))).toEqual([5, 3, 1]);
  expect(ids(index, entry(1))).toEqual([]);
});

test("what is forgotten leaves no text behind, and no gap, however much of it there was", () => {
  const index = new JobIndex();
  const entries = Array.from({ length: 2_000 }, (_, number) => entry(number));
  for (const one of entries) index.add(one);
  const kept = entries.filter((_, number) => number % 5 === 0);
  for (const one of entries) if (!kept.includes(one)) index.forget(one);
  expect(index.size).toBe(kept.length);
  expect(ids(index)).toEqual(kept.map(({ job }) => Number(job.jobId)).toReversed());
  expect(ids(index, entries[12])).toEqual([10, 5, 0]);
  const gone = entries[1];
  expect(gone).toMatchObject({ payloadJson: null, resultJson: null, evicted: true });
  expect(index.get(gone?.job.jobId ?? "")).toBeUndefined();
});

test("the finished line gives back what it got, first in, first out, over many cuts", () => {
  const line = new FinishedLine();
  const out: number[] = [];
  for (let number = 0; number < 3_000; number += 1) {
    line.add(entry(number));
    if (number % 3 === 0) continue;
    out.push(Number(line.oldest()?.job.jobId));
    line.dropOldest();
  }
  expect(line.size).toBe(1_000);
  while (line.size > 0) {
    out.push(Number(line.oldest()?.job.jobId));
    line.dropOldest();
  }
  line.dropOldest();
  expect(line.oldest()).toBeUndefined();
  expect(out).toEqual(Array.from({ length: 3_000 }, (_, number) => number));
});
