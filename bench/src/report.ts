/** What a run says: a table of all rows, its goals first, and the same as JSON, with all versions and the machine. Pure. */
import type { Effort } from "./effort.js";
import { median } from "./measure.js";
import type { Row, Series, Target } from "./row.js";

/** What became of one benchmark. */
export type Result = { readonly name: string; readonly about: string } & (
  | { readonly kind: "ran"; readonly seconds: number; readonly rows: readonly Row[] }
  | { readonly kind: "not run"; readonly needs: string }
  | { readonly kind: "failed"; readonly error: string }
);

export interface Report {
  readonly quick: boolean;
  readonly effort: Effort;
  readonly machine: Readonly<Record<string, string | number>>;
  readonly versions: Readonly<Record<string, string>>;
  readonly results: readonly Result[];
}

/** With the digits that mean something. JSON has null for a number that is none. */
export function show(value: number): string {
  if (!Number.isFinite(value)) return "none";
  if (value >= 100) return Math.round(value).toLocaleString("en-US");
  return value >= 10 ? value.toFixed(1) : value.toFixed(value >= 1 ? 2 : 3);
}

function spread(rounds: readonly number[]): string {
  const middle = show(median(rounds));
  if (rounds.length < 2) return middle;
  return `${middle} (${show(Math.min(...rounds))} to ${show(Math.max(...rounds))})`;
}

function seriesText({ name, rounds }: Series): string {
  return `${name}: ${spread(rounds)}`;
}

export function listedTarget(target: Target): string {
  return "atLeast" in target ? `>= ${String(target.atLeast)}` : `<= ${String(target.atMost)}`;
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

function lines(result: Result): string[] {
  switch (result.kind) {
    case "ran":
      return result.rows.map((row) =>
        line([
          result.name,
          row.what,
          row.unit,
          seriesText(row.product),
          row.peer === null ? "" : seriesText(row.peer),
          row.ratios.length === 0 ? "" : spread(row.ratios),
          row.target === null
            ? ""
            : listedTarget(row.target) + (row.peer === null ? ` ${row.unit}` : ""),
          row.met === null ? "" : row.met ? "yes" : "**no**",
        ]),
      );
    case "not run":
      return [
        line([
          result.name,
          `${result.about}: not run: needs ${result.needs}`,
          "",
          "",
          "",
          "",
          "",
          "not run",
        ]),
      ];
    case "failed":
      return [
        line([
          result.name,
          `${result.about}: failed: ${firstLine(result.error)}`,
          "",
          "",
          "",
          "",
          "",
          "failed",
        ]),
      ];
    default:
      return result satisfies never;
  }
}

function firstLine(text: string): string {
  return (text.split("\n")[0] ?? "").replaceAll("|", "/");
}

/** A goal is met when all of its rows with a target are. */
function verdict(result: Result): string {
  if (result.kind !== "ran") return result.kind;
  const judged = result.rows.filter(({ met }) => met !== null);
  return judged.every(({ met }) => met === true) ? "met" : "not met";
}

export function table({ results }: Report): string {
  const goals = results.filter(({ name }) => /^P\d/.test(name));
  const summary = goals.map((result) => `${result.name} ${verdict(result)}`).join(", ");
  const head = ["goal", "work", "unit", "product", "peer", "ratio", "target", "met"];
  return [
    ...(summary === "" ? [] : [`${summary}.`, ""]),
    line(head),
    line(head.map(() => "---")),
    ...results.flatMap(lines),
  ].join("\n");
}

export function listed(values: Readonly<Record<string, string | number>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name} ${String(value)}`)
    .join(", ");
}

export function page(report: Report): string {
  const { effort, quick } = report;
  const notes = quick
    ? `A quick run, to see that all runs: ${String(effort.rounds)} short round without a warm-up, drains of ${String(effort.drainJobs)}, ${String(effort.waiters)} waiters, ${String(effort.terminalRows)} terminal rows, ${String(effort.idleSeconds)} s idle, ${String(effort.memoryJobs)} jobs for memory. Its figures settle nothing.`
    : "";
  return `# Results

Made by \`npm run bench\`. Medians of the rounds, smallest to largest in brackets; product and peers ran in turn, and a ratio compares rounds pair by pair. ${notes}

${table(report)}

Versions: ${listed(report.versions)}.

Machine: ${listed(report.machine)}.
`;
}
