/**
 * What docs/performance.md shows, made of the runs in docs/plots/results.json: the plots, each of them
 * also where nothing was measured yet, and the table. Pure: the same runs give the same text.
 */
import { listed, table, type Report, type Result } from "../report.js";
import type { Series } from "../row.js";
import { goalPlot } from "./goal-plot.js";
import { linePlot, type Line, type LinePlot, type Point } from "./line-plot.js";

type Drawing = Omit<LinePlot, "lines" | "subtitle"> & {
  readonly file: string;
  readonly benchmark: string;
};

const OVER_TIME = { xName: "minutes since the start", xScale: "even" } as const;

const DRAWINGS: readonly Drawing[] = [
  {
    file: "table.svg",
    benchmark: "growth-table",
    title: "Cost of a job by ended jobs in the table",
    xName: "ended jobs in the table",
    yUnit: "µs/job",
    yScale: "linear",
  },
  {
    file: "workers.svg",
    benchmark: "growth-workers",
    title: "Drain by worker processes",
    xName: "worker processes",
    yUnit: "jobs/s",
    yScale: "linear",
  },
  {
    file: "payload.svg",
    benchmark: "growth-payload",
    title: "Cost of a job by its input",
    xName: "input of a job",
    xUnit: "B",
    yUnit: "µs/job",
    yScale: "log",
  },
  {
    file: "waits.svg",
    benchmark: "growth-waiters",
    title: "From a job's end to the answer of its wait, p99",
    xName: "requests that wait on one server",
    yUnit: "ms",
    yScale: "log",
  },
  {
    file: "waits-memory.svg",
    benchmark: "growth-waiters",
    title: "Memory of one waiter",
    xName: "requests that wait on one server",
    yUnit: "KiB",
    yScale: "linear",
  },
  {
    file: "hours.svg",
    benchmark: "growth-hours",
    title: "From the submit of a job, over an hour of them",
    ...OVER_TIME,
    yUnit: "ms",
    yScale: "log",
  },
  {
    file: "hours-size.svg",
    benchmark: "growth-hours",
    title: "What the store and the processes hold, over an hour",
    ...OVER_TIME,
    yUnit: "MiB",
    yScale: "log",
  },
];

const isGoal = (name: string): boolean => /^P\d/.test(name);
/** Shown by plots alone; hours have goals as well. */
const isGrowth = (name: string): boolean =>
  name.startsWith("growth-") && !name.startsWith("growth-hours");

/** The runs with another one: it takes the place of those benchmarks that it has as well. */
export function withRun(runs: readonly Report[], fresh: Report): Report[] {
  const again = new Set(fresh.results.map(({ name }) => name));
  const kept = runs.map((run) => ({
    ...run,
    results: run.results.filter(({ name }) => !again.has(name)),
  }));
  return [...kept, fresh].filter(({ results }) => results.length > 0);
}

/** By the names of their files. */
export function plots(runs: readonly Report[]): Map<string, string> {
  const lines = DRAWINGS.map(({ file, benchmark, ...drawing }): [string, string] => {
    const subtitle = source(runs, (name) => name === benchmark);
    const drawn = linesOf(resultsOf(runs), benchmark, drawing.yUnit);
    return [file, linePlot({ ...drawing, subtitle, lines: drawn })];
  });
  const goals = resultsOf(runs).filter(({ name }) => isGoal(name));
  return new Map([["goals.svg", goalPlot(goals, source(runs, isGoal))], ...lines]);
}

/** P1 to P12 in this order, from whichever run. */
function resultsOf(runs: readonly Report[]): Result[] {
  const byName = new Intl.Collator("en", { numeric: true });
  return runs.flatMap(({ results }) => results).sort((a, b) => byName.compare(a.name, b.name));
}

/** All steps of a unit, each once: a row repeats the first step, which it is compared with. */
function linesOf(results: readonly Result[], benchmark: string, unit: string): Line[] {
  const lines = new Map<string, Map<number, Point>>();
  for (const result of results) {
    if (result.name !== benchmark || result.kind !== "ran") continue;
    for (const row of result.rows.filter((each) => each.unit === unit))
      for (const series of [row.product, row.peer]) {
        for (const { line, ...point } of series === null ? [] : pointsOf(series)) {
          const points = lines.get(line) ?? new Map<number, Point>();
          lines.set(line, points.set(point.x, point));
        }
      }
  }
  return [...lines].map(([name, points]) => ({ name, points: [...points.values()] }));
}

function pointsOf({ at, along, rounds }: Series): (Point & { readonly line: string })[] {
  if (at !== undefined) return [{ ...at, rounds }];
  if (along === undefined) return [];
  const { line, every } = along;
  return rounds.map((value, index) => ({ line, x: (index + 1) * every, rounds: [value] }));
}

/** On what the chosen benchmarks ran, and when. */
function source(runs: readonly Report[], chosen: (name: string) => boolean): string {
  const from = runs.filter(({ results }) => results.some(({ name }) => chosen(name)));
  return from.map(madeOn).join(" · ");
}

function madeOn({ machine, quick }: Report): string {
  const { at, cpu, cores } = machine;
  const day = String(at).slice(0, 10);
  return `${day}, ${String(cpu)}, ${String(cores)} cores${quick ? ", a quick run: settles nothing" : ""}`;
}

/** The tables of all runs, each with its machine and versions; growth is in the plots. */
export function tables(runs: readonly Report[]): string {
  if (runs.length === 0) return "Not measured yet.";
  return runs
    .map((run) => {
      const shown = { ...run, results: run.results.filter(({ name }) => !isGrowth(name)) };
      const names = run.results.map(({ name }) => name).join(", ");
      return [
        `**${madeOn(run)}**: ${names}.`,
        ...(shown.results.length === 0 ? [] : [table(shown)]),
        `Machine: ${listed(run.machine)}. Versions: ${listed(run.versions)}.`,
      ].join("\n\n");
    })
    .join("\n\n");
}
