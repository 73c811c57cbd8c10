/**
 * The form in which batches cross to the thread and their outcomes come back. Copying a cell costs as
 * much as binding it does, and the jobs of a list have most cells in common: a column in which all rows
 * have the same crosses as that one cell. A call to which nothing unusual happened is answered with null.
 */
import type {
  Batch,
  Column,
  Failure,
  Operation,
  Outcome,
  PackedBatch,
  PackedOutcomes,
  Row,
} from "./protocol.js";

export function packBatch(nowMs: number, operations: readonly Operation[]): PackedBatch {
  const packed = operations.map((operation) => {
    if (operation.verb !== "submit") return operation;
    const { jobs, ...submit } = operation;
    return { ...submit, count: jobs.length, columns: toColumns(jobs) };
  });
  return { kind: "batch", nowMs, operations: packed };
}

export function unpackBatch({ nowMs, operations }: PackedBatch): Batch {
  const unpacked = operations.map((operation): Operation => {
    if (operation.verb !== "submit") return operation;
    const { count, columns, ...submit } = operation;
    return { ...submit, jobs: toRows(columns, count) };
  });
  return { nowMs, operations: unpacked };
}

function toColumns(rows: readonly Row[]): Column[] {
  const [first = []] = rows;
  return first.map((cell, at) =>
    rows.every((row) => row[at] === cell) ? cell : rows.map((row) => row[at] ?? null),
  );
}

function toRows(columns: readonly Column[], count: number): Row[] {
  return Array.from({ length: count }, (_, place) =>
    columns.map((column) =>
      typeof column === "object" && column !== null ? (column[place] ?? null) : column,
    ),
  );
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
