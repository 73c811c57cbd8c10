/**
 * The form in which batches cross to the thread and their outcomes come back. Copying an object costs
 * more than inserting a row does, so the frequent calls travel without any: the rows of all submits of
 * a batch (but for those of all or nothing) lie in one flat array, and a call to which nothing unusual happened is answered with null.
 */
import type {
  Batch,
  Cell,
  Failure,
  Operation,
  Outcome,
  PackedBatch,
  PackedOutcomes,
  Row,
} from "./protocol.js";
import { SUBMITTED_COLUMNS } from "./rows.js";

export function packBatch(nowMs: number, operations: readonly Operation[]): PackedBatch {
  const maxDepths: number[] = [];
  const cells: Cell[] = [];
  const packed = operations.map((operation) => {
    if (operation.verb !== "submit" || operation.whole === true) return operation;
    maxDepths.push(operation.maxDepth);
    for (const row of operation.jobs) for (const cell of row) cells.push(cell);
    return operation.jobs.length;
  });
  return { kind: "batch", nowMs, operations: packed, maxDepths, cells };
}

export function unpackBatch({ nowMs, operations, maxDepths, cells }: PackedBatch): Batch {
  let submits = 0;
  let at = 0;
  const nextRow = (): Row => cells.slice(at, (at += SUBMITTED_COLUMNS.length));
  const unpacked = operations.map((operation): Operation => {
    if (typeof operation !== "number") return operation;
    const maxDepth = maxDepths[submits] ?? 0;
    submits += 1;
    return { verb: "submit", maxDepth, jobs: Array.from({ length: operation }, nextRow) };
  });
  return { nowMs, operations: unpacked };
}

export function packOutcomes(outcomes: readonly Outcome[]): PackedOutcomes {
  const failures: [number, Failure][] = [];
  const answers = outcomes.map((outcome, place) => {
    if (!outcome.failed) return outcome.answer;
    failures.push([place, outcome]);
    return null;
  });
  return { kind: "outcomes", answers, failures };
}

export function unpackOutcomes({ answers, failures }: PackedOutcomes): Outcome[] {
  const outcomes = answers.map((answer): Outcome => ({ failed: false, answer }));
  for (const [place, failure] of failures) outcomes[place] = failure;
  return outcomes;
}
