import { expect, test } from "vitest";
import { painted, PLAIN, stateColour } from "./look.js";
import { fields, table, type Column } from "./table.js";
import { widthOf } from "./text.js";

const COLUMNS: readonly Column[] = [
  { head: "ID", importance: 4 },
  { head: "STATE", importance: 3, paint: stateColour },
  { head: "CREATED", importance: 1 },
  { head: "ERROR", importance: 2, least: 6 },
];
const ROWS = [
  ["job_1", "done", "2026-01-01", ""],
  ["job_2", "failed", "2026-01-02", "Error: out of paper"],
];
const at = (columns: number | null): string[] =>
  table(COLUMNS, ROWS, { columns, colour: false }).split("\n");

test("without a terminal columns are as wide as they need to be", () => {
  expect(at(null)).toEqual([
    "ID     STATE   CREATED     ERROR",
    "job_1  done    2026-01-01",
    "job_2  failed  2026-01-02  Error: out of paper",
  ]);
  expect(table(COLUMNS, [], PLAIN)).toBe("ID  STATE  CREATED  ERROR");
});

test("on a terminal the least important give way, first in part and then as a whole", () => {
  expect(at(100)).toEqual(at(null));
  expect(at(40)[2]).toBe("job_2  failed  2026-01-02  Error: out o…");
  expect(at(33)[2]).toBe("job_2  failed  2026-01-02  Error…");
  expect(at(32)).toEqual([
    "ID     STATE   ERROR",
    "job_1  done",
    "job_2  failed  Error: out of pa…",
  ]);
  expect(at(20)[2]).toBe("job_2  failed");
  expect(at(10)[2]).toBe("job_2");
  expect(at(3)[2]).toBe("jo…");
});

test("no line is ever wider than the terminal", () => {
  const rows = [["日本語の仕事", "running", "👩‍👩‍👧‍👦", "エラー: 紙がない ".repeat(9)]];
  for (let columns = 1; columns < 90; columns++)
    for (const line of table(COLUMNS, rows, { columns, colour: false }).split("\n"))
      expect(widthOf(line)).toBeLessThanOrEqual(columns);
});

test("wide characters keep the columns in line", () => {
  const rows = [
    ["日本", "done", "x", ""],
    ["ab", "done", "y", ""],
  ];
  const [head = "", wide = "", narrow = ""] = table(COLUMNS, rows, PLAIN).split("\n");
  expect(widthOf(wide.slice(0, wide.indexOf("done")))).toBe(narrow.indexOf("done"));
  expect(head.indexOf("STATE")).toBe(narrow.indexOf("done"));
});

test("what strangers sent can't steer the terminal, and colours are not counted", () => {
  const look = { columns: 40, colour: true };
  const rows = [["job_1", "failed", "2026", "\u001b[2Jgone\nnext"]];
  expect(table(COLUMNS, rows, look).split("\n")[1]).toBe(
    "job_1  \u001b[31mfailed\u001b[0m  2026     gone next",
  );
  expect(fields([["x", "a\u0007b\u001b[0m"]])).toBe("x: a b");
});

test("fields leave out what is null", () => {
  expect(
    fields([
      ["a", "1"],
      ["longer", "2", painted("red", { columns: null, colour: true })],
      ["none", null],
    ]),
  ).toBe("a:      1\nlonger: \u001b[31m2\u001b[0m");
});
