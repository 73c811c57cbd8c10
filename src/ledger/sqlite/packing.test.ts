import { expect, test } from "vitest";
import { packBatch, packOutcomes, unpackBatch, unpackOutcomes } from "./packing.js";
import type { Operation, Outcome, Row } from "./protocol.js";
import { SUBMITTED_COLUMNS } from "./rows.js";

const row = (name: string): Row => SUBMITTED_COLUMNS.map((column) => `${name}.${column}`);

test("a batch comes out as it went in, whatever stands between the submits", () => {
  const operations: Operation[] = [
    { verb: "submit", maxDepth: 3, jobs: [row("a"), row("b")] },
    { verb: "counts" },
    { verb: "submit", maxDepth: 0, jobs: [] },
    { verb: "submit", maxDepth: Infinity, jobs: [row("c")] },
    { verb: "submit", maxDepth: 2, whole: true, jobs: [row("d")] },
    { verb: "get", jobIds: ["x"] },
    { verb: "submit", maxDepth: 4, jobs: [row("e")] },
    { verb: "submit", maxDepth: 5, jobs: [row("f"), ["other id", ...row("f").slice(1)]] },
    {
      verb: "submit",
      maxDepth: 6,
      jobs: [
        [null, 1, "x"],
        [1, null, "x"],
      ],
    },
  ];
  const packed = structuredClone(packBatch(17, operations));
  expect(unpackBatch(packed)).toEqual({ nowMs: 17, operations });
});

test("what all jobs of a list have in common crosses once", () => {
  const jobs: Row[] = [
    ["a", null, "t", 1],
    ["b", null, "t", 1],
  ];
  const { operations } = packBatch(17, [{ verb: "submit", maxDepth: 3, jobs }]);
  expect(operations).toEqual([
    { verb: "submit", maxDepth: 3, count: 2, columns: [["a", "b"], null, "t", 1] },
  ]);
});

test("outcomes come out as they went in, failures in their places", () => {
  const outcomes: Outcome[] = [
    { failed: false, answer: null },
    { failed: true, code: "ledger_full", detail: "full" },
    { failed: false, answer: { admitted: 0, depth: 16, others: [[0, "repeated", row("a")]] } },
    { failed: true, code: null, detail: "a bug" },
  ];
  expect(unpackOutcomes(structuredClone(packOutcomes(outcomes)))).toEqual(outcomes);
});
