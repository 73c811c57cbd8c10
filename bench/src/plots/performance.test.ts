import { expect, it } from "vitest";
import { FULL } from "../effort.js";
import type { Report, Result } from "../report.js";
import type { Row, Series, Target } from "../row.js";
import { plots, tables, withRun } from "./performance.js";

const FILES = [
  "goals.svg",
  "table.svg",
  "workers.svg",
  "payload.svg",
  "waits.svg",
  "waits-memory.svg",
  "hours.svg",
  "hours-size.svg",
];

function report(results: readonly Result[], quick = false): Report {
  const machine = { cpu: "A & B <fast>", cores: 2, at: "2026-01-02T03:04:05.000Z" };
  return { quick, effort: FULL, machine, versions: { jobtable: "1.2.3" }, results };
}

function ran(name: string, rows: readonly Row[]): Result {
  return { name, about: "something", kind: "ran", seconds: 1, rows };
}

function row(product: Series, peer: Series | null, target: Target | null, unit = "µs/job"): Row {
  const ratios =
    peer === null ? [] : product.rounds.map((value, at) => value / (peer.rounds[at] ?? 1));
  return { what: "work", unit, product, peer, ratios, target, met: target === null ? null : true };
}

function step(line: string, x: number, ...rounds: number[]): Series {
  return { name: `${String(x)} of it`, rounds, at: { line, x } };
}

function drawn(file: string, ...results: Result[]): string {
  const svg = plots([report(results)]).get(file);
  if (svg === undefined) throw new Error(`no ${file}`);
  return svg;
}

/** Tags that match, attributes in quotes, text without bare marks. */
function expectWellFormed(svg: string): void {
  const open: string[] = [];
  const rest = svg.replaceAll(
    /<(\/?)([a-z]+)((?: [\w:-]+="[^"<&]*(?:&(?:amp|lt|gt|quot);[^"<&]*)*")*)(\/?)>/gi,
    (_, closes: string, name: string, _attributes: string, alone: string) => {
      if (closes === "/") expect(open.pop()).toBe(name);
      else if (alone === "") open.push(name);
      return "";
    },
  );
  expect(open).toEqual([]);
  expect(rest.replaceAll(/&(?:amp|lt|gt|quot);/g, "")).not.toMatch(/[<>&]/);
  expect(svg).not.toMatch(/NaN|Infinity|undefined|null/);
}

const goal = ran("P1", [
  row(
    { name: "jobtable", rounds: [90, 100, 110] },
    { name: 'the "peer" & <co>', rounds: [100, 100, 100] },
    { atLeast: 0.5 },
  ),
]);
const payload = ran("growth-payload", [
  row(step("PostgreSQL", 100, 40, 50, 60), null, null),
  row(step("PostgreSQL", 10_000_000, 90_000, 100_000), step("PostgreSQL", 100, 40, 50, 60), null),
  row(step("SQLite FULL", 100, 20), null, null),
]);

it("draws every plot where nothing was measured yet", () => {
  const files = plots([]);
  expect([...files.keys()]).toEqual(FILES);
  for (const svg of files.values()) {
    expectWellFormed(svg);
    expect(svg).toContain("not measured yet");
  }
});

it("draws the same from the same, well-formed whatever the words are", () => {
  const runs = [report([goal, payload], true)];
  const files = plots(runs);
  for (const svg of files.values()) expectWellFormed(svg);
  expect([...plots(structuredClone(runs))]).toEqual([...files]);
  expect(files.get("goals.svg")).toContain("a quick run");
});

it("says a bar's figure beside its goal, and how many times better it is by its length", () => {
  const svg = drawn("goals.svg", goal);
  expect(svg).toContain("1.00 times, goal &gt;= 0.5");
  const [bar, other] = [svg, drawn("goals.svg", withTarget({ atMost: 2 }))].map(
    (text) => /<rect class="dot0"[^>]*>/.exec(text)?.[0],
  );
  expect(bar).toBeDefined();
  expect(bar).toBe(other);
});

function withTarget(target: Target): Result {
  return ran("P1", [row({ name: "a", rounds: [3] }, { name: "b", rounds: [3] }, target)]);
}

it("draws what is worse than its goal to the left of it, and out of sight no further than the edge", () => {
  const xOf = (result: Result): number =>
    Number(/<rect class="dot0" x="([\d.]+)"/.exec(drawn("goals.svg", result))?.[1]);
  expect(xOf(withTarget({ atLeast: 2 }))).toBeLessThan(xOf(withTarget({ atMost: 2 })));
  const zero = ran("P10", [row({ name: "a", rounds: [0] }, null, { atMost: 1 }, "%")]);
  expectWellFormed(drawn("goals.svg", zero));
  expect(drawn("goals.svg", zero)).toContain("goal &lt;= 1");
});

it("leaves out a figure that is none, and says so where none is left", () => {
  const lost = ran("P1", [
    row({ name: "a", rounds: [Number.NaN] }, { name: "b", rounds: [1] }, { atLeast: 1 }),
  ]);
  expectWellFormed(drawn("goals.svg", lost));
  expect(drawn("goals.svg", lost)).toContain("not measured yet");
  const failed: Result = { name: "growth-table", about: "x", kind: "failed", error: "it broke" };
  expect(drawn("table.svg", failed)).toContain("not measured yet");
  const part = ran("growth-workers", [row(step("SQLite", 1, Number.NaN, 7), null, null, "jobs/s")]);
  expectWellFormed(drawn("workers.svg", part));
  expect(drawn("workers.svg", part)).toContain("1: 7.00.</desc>");
});

it("draws each step of a line once, a power of ten as far apart as the next", () => {
  const svg = drawn("payload.svg", payload);
  expect(svg.match(/<circle class="dot0"/g)).toHaveLength(2);
  expect(svg.match(/<circle class="dot1"/g)).toHaveLength(1);
  expect(svg).toContain(
    "PostgreSQL, µs/job: 100 B: 50.0; 10 MB: 95,000. SQLite FULL, µs/job: 100 B: 20.0.",
  );
  const steps = [100, 1_000, 10_000].map((x) => row(step("a", x, x), null, null));
  const xs = [...drawn("payload.svg", ran("growth-payload", steps)).matchAll(/cx="([\d.]+)"/g)];
  const [first, second, third] = xs.map(([, x]) => Number(x));
  expect((third ?? 0) - (second ?? 0)).toBeCloseTo((second ?? 0) - (first ?? 0), 0);
});

it("has a place for an empty table before the first power of ten", () => {
  const steps = [0, 10_000, 100_000].map((x) => row(step("a", x, 9), null, null));
  const svg = drawn("table.svg", ran("growth-table", steps));
  expectWellFormed(svg);
  const [, points = ""] = /<polyline[^>]* points="([^"]*)"/.exec(svg) ?? [];
  const xs = points.split(" ").map((pair) => Number(pair.split(",")[0]));
  expect(xs).toEqual([...xs].sort((a, b) => a - b));
  expect(new Set(xs).size).toBe(3);
});

it("keeps milliseconds and memory of waits apart", () => {
  const waits = ran("growth-waiters", [
    row(step("ends", 100, 5), step("bare", 100, 4), null, "ms"),
    row(step("memory", 100, 11), null, null, "KiB"),
  ]);
  expect(drawn("waits.svg", waits)).toContain("ends, ms: 100: 5.00. bare, ms: 100: 4.00.");
  expect(drawn("waits-memory.svg", waits)).toContain("memory, KiB: 100: 11.0.</desc>");
});

it("draws samples over time at even distances, and tells of some of them", () => {
  const rounds = Array.from({ length: 60 }, (_, minute) => minute + 10);
  const along = { line: "submit p50", every: 1 };
  const hours = ran("growth-hours", [
    row({ name: "jobtable", rounds, along }, null, null, "ms"),
    row({ name: "jobtable", rounds: [1.1] }, null, { atMost: 1.2 }, "times"),
  ]);
  const svg = drawn("hours.svg", hours);
  expectWellFormed(svg);
  const [, points = ""] = /<polyline[^>]* points="([^"]*)"/.exec(svg) ?? [];
  const xs = points.split(" ").map((pair) => Number(pair.split(",")[0]));
  expect(xs).toHaveLength(60);
  expect((xs[59] ?? 0) - (xs[30] ?? 0)).toBeCloseTo((xs[29] ?? 0) - (xs[0] ?? 0), 0);
  expect(svg).toContain("submit p50, ms: 1: 10.0; 6: 15.0;");
  expect(svg).toContain("60: 69.0.</desc>");
  expect(svg).toMatch(/<polyline [^>]*fill="none"/);
  expect(tables([report([hours])])).toContain("| growth-hours | work |");
});

it("replaces what a later run has as well, and drops a run of which nothing is left", () => {
  const first = report([goal, payload]);
  const second = report([goal]);
  const third = report([payload]);
  const both = withRun([first], second);
  expect(both.map(({ results }) => results.map(({ name }) => name))).toEqual([
    ["growth-payload"],
    ["P1"],
  ]);
  expect(withRun(both, third)).toEqual([second, third]);
});

it("lists each run with its machine and versions, and growth by its name alone", () => {
  expect(tables([])).toBe("Not measured yet.");
  const page = tables([report([goal]), report([payload])]);
  expect(page).toContain("| P1 | work |");
  expect(page).not.toContain("| growth-payload |");
  expect(page).toContain("cores**: growth-payload.");
  expect(page.match(/jobtable 1\.2\.3/g)).toHaveLength(2);
  const lost = ran("P1", [row({ name: "a", rounds: [Number.NaN] }, null, null)]);
  expect(tables(JSON.parse(JSON.stringify([report([lost])])) as Report[])).toContain("a: none");
});
