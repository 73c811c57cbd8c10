/** What a run says: a table of all rows, its goals first, and the same as JSON, with all versions and the machine. */
import { execFileSync } from "node:child_process";
import {
  closeSync,
  fdatasyncSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeSync,
} from "node:fs";
import { createRequire } from "node:module";
import { cpus, release, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { nodeFor } from "./acting.js";
import type { Effort } from "./effort.js";
import { median, nowMs } from "./measure.js";
import type { Row, Series, Target } from "./row.js";
import { redisVersion } from "./servers/redis.js";

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

const PEERS = ["bullmq", "graphile-worker", "ioredis", "pg-boss", "plainjob"];
const ROOT = join(import.meta.dirname, "../..");

export function versions(postgres: string | null): Record<string, string> {
  const of = (folder: string): string =>
    (JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { version: string }).version;
  const database = new Database(":memory:");
  const sqlite = String(database.prepare("select sqlite_version()").pluck().get());
  database.close();
  const newer = execFileSync(nodeFor("pg-boss"), ["--version"], { encoding: "utf8" }).trim();
  return {
    jobtable: of(ROOT),
    ...Object.fromEntries(PEERS.map((name) => [name, of(join(ROOT, "bench/node_modules", name))])),
    fastify: (createRequire(import.meta.url)("fastify/package.json") as { version: string })
      .version,
    node: process.version,
    "node of pg-boss and graphile-worker": newer,
    postgresql: postgres ?? "not started",
    redis: redisVersion() ?? "not installed",
    sqlite,
  };
}

export function machine(): Record<string, string | number> {
  return {
    cpu: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${process.platform} ${release()}`,
    fdatasyncMs: Number(fdatasyncMs().toFixed(3)),
    at: new Date().toISOString(),
  };
}

/** What the disk under the temporary folder takes for 4 KiB; near 0 means that nothing there is durable. */
function fdatasyncMs(): number {
  const folder = mkdtempSync(join(tmpdir(), "jobtable-bench-"));
  const file = openSync(join(folder, "probe"), "w");
  const page = Buffer.alloc(4_096, 1);
  const taken = Array.from({ length: 50 }, () => {
    writeSync(file, page);
    const began = nowMs();
    fdatasyncSync(file);
    return nowMs() - began;
  });
  closeSync(file);
  rmSync(folder, { recursive: true, force: true });
  return median(taken);
}

function show(value: number): string {
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

function targetText(target: Target): string {
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
            : targetText(row.target) + (row.peer === null ? ` ${row.unit}` : ""),
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

export function page(report: Report): string {
  const { effort, quick } = report;
  const listed = (values: Readonly<Record<string, string | number>>): string =>
    Object.entries(values)
      .map(([name, value]) => `${name} ${String(value)}`)
      .join(", ");
  const notes = quick
    ? `A quick run, to see that all runs: ${String(effort.rounds)} short rounds, drains of ${String(effort.drainJobs)}, ${String(effort.waiters)} waiters, ${String(effort.terminalRows)} terminal rows, ${String(effort.idleSeconds)} s idle, ${String(effort.memoryJobs)} jobs for memory. Its figures settle nothing.`
    : "";
  return `# Results

Made by \`npm run bench\`. Medians of the rounds, smallest to largest in brackets; product and peers ran in turn, and a ratio compares rounds pair by pair. ${notes}

${table(report)}

Versions: ${listed(report.versions)}.

Machine: ${listed(report.machine)}.
`;
}
