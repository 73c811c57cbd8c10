/**
 * `npm run bench -- [name...] [--quick]`: runs product and peers in turn on this machine, prints a
 * table, and writes bench/results.json and bench/results.md. Names: those of the `BENCHMARKS` below.
 */
import { writeFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";
import { floorRate, hasLoadGenerator, submitRate } from "./http.js";
import { drainRate, latencyMs, memorySubmitRate, submitRateInProcess } from "./library.js";
import { contest, figure, median, type Row } from "./measure.js";
import { plainjobDrainRate, plainjobSubmitRate } from "./plainjob.js";

interface Effort {
  readonly rounds: number;
  readonly seconds: number;
  readonly jobs: number;
}

const FULL: Effort = { rounds: 5, seconds: 5, jobs: 20_000 };
const QUICK: Effort = { rounds: 3, seconds: 2, jobs: 20_000 };

const UNBOUNDED = 100_000_000;

const BENCHMARKS: Readonly<Record<string, (effort: Effort) => Promise<Row[]>>> = {
  P1: async ({ rounds, seconds }) => {
    if (!hasLoadGenerator())
      throw new Error("P1 needs wrk on the PATH (Debian: apt-get install wrk)");
    const rows = await contest(
      {
        goal: "P1",
        what: "HTTP submit, 202 after fsync, 32 connections (SQLite FULL)",
        unit: "req/s",
        atLeast: 0.75,
        product: { name: "jobtable serve, SQLite", run: () => submitRate("sqlite", seconds) },
        peer: { name: "bare Fastify", run: () => floorRate(seconds) },
      },
      rounds,
    );
    const memory = await contest(
      {
        goal: "",
        what: "HTTP submit, 32 connections (memory)",
        unit: "req/s",
        atLeast: 0.75,
        product: { name: "jobtable serve, memory", run: () => submitRate("memory", seconds) },
        peer: { name: "bare Fastify", run: () => floorRate(seconds) },
      },
      rounds,
    );
    return [rows, memory];
  },
  P5: async ({ rounds, jobs }) => [
    await contest(
      {
        goal: "P5",
        what: "single submits, 64 in flight (SQLite FULL)",
        unit: "jobs/s",
        atLeast: 2,
        product: { name: "jobtable", run: () => submitRateInProcess(jobs, UNBOUNDED) },
        peer: { name: "plainjob, NORMAL", run: () => plainjobSubmitRate(jobs) },
      },
      rounds,
    ),
  ],
  P6: async ({ rounds, jobs }) => [
    await contest(
      {
        goal: "P6",
        what: `claim + settle: drain ${String(jobs)}, results kept (SQLite FULL)`,
        unit: "jobs/s",
        atLeast: 4,
        product: { name: "jobtable", run: () => drainRate("sqlite", jobs) },
        peer: { name: "plainjob, NORMAL", run: () => plainjobDrainRate(jobs) },
      },
      rounds,
    ),
  ],
  P7: async ({ rounds }) => [
    await figure(
      {
        goal: "P7",
        what: "submit called to handler start, idle, one process, p50 (SQLite FULL)",
        unit: "ms",
        name: "jobtable",
        atMost: 0.5,
        run: () => latencyMs("sqlite", 300, 0.5),
      },
      rounds,
    ),
    await figure(
      {
        goal: "",
        what: "the same, p99",
        unit: "ms",
        name: "jobtable",
        run: () => latencyMs("sqlite", 300, 0.99),
      },
      rounds,
    ),
  ],
  P12: async ({ rounds, jobs }) => [
    await contest(
      {
        goal: "P12",
        what: "single submits with the bound in reach against far away (SQLite FULL)",
        unit: "jobs/s",
        atLeast: 0.7,
        product: { name: "bound = jobs", run: () => submitRateInProcess(jobs, jobs) },
        peer: { name: "bound far away", run: () => submitRateInProcess(jobs, UNBOUNDED) },
      },
      rounds,
    ),
  ],
  memory: async ({ rounds, jobs }) => [
    await figure(
      {
        goal: "",
        what: "single submits, 64 in flight (memory)",
        unit: "jobs/s",
        name: "jobtable",
        run: () => memorySubmitRate(jobs),
      },
      rounds,
    ),
    await figure(
      {
        goal: "",
        what: `claim + settle: drain ${String(jobs)} (memory)`,
        unit: "jobs/s",
        name: "jobtable",
        run: () => drainRate("memory", jobs),
      },
      rounds,
    ),
  ],
};

function show(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString("en-US") : value.toFixed(3);
}

function spread(rounds: readonly number[]): string {
  return `${show(median(rounds))} (${show(Math.min(...rounds))} to ${show(Math.max(...rounds))})`;
}

function table(rows: readonly Row[]): string {
  const head = "| goal | work | unit | product | peer | ratio | target | met |";
  const lines = rows.map((row) => {
    const peer = row.peer === null ? "" : `${row.peer.name}: ${spread(row.peer.rounds)}`;
    const ratio = row.ratio === null ? "" : row.ratio.toFixed(2);
    const met = row.met === null ? "" : row.met ? "yes" : "no";
    return `| ${row.goal} | ${row.what} | ${row.product.unit} | ${row.product.name}: ${spread(row.product.rounds)} | ${peer} | ${ratio} | ${row.target} | ${met} |`;
  });
  return [head, "|---|---|---|---|---|---|---|---|", ...lines].join("\n");
}

async function main(args: readonly string[]): Promise<void> {
  const effort = args.includes("--quick") ? QUICK : FULL;
  const names = args.filter((arg) => !arg.startsWith("--"));
  const unknown = names.filter((name) => !(name in BENCHMARKS));
  if (unknown.length > 0)
    throw new Error(
      `no benchmark named ${unknown.join(", ")}; there are ${Object.keys(BENCHMARKS).join(", ")}`,
    );
  const rows: Row[] = [];
  for (const [name, run] of Object.entries(BENCHMARKS)) {
    if (names.length > 0 && !names.includes(name)) continue;
    process.stderr.write(`${name} ...\n`);
    rows.push(...(await run(effort)));
  }
  const machine = {
    node: process.version,
    cpu: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    at: new Date().toISOString(),
  };
  const text = table(rows);
  process.stdout.write(`${text}\n`);
  writeFileSync(
    join(import.meta.dirname, "results.json"),
    `${JSON.stringify({ machine, effort, rows }, null, 2)}\n`,
  );
  writeFileSync(
    join(import.meta.dirname, "results.md"),
    `# Results\n\nNode ${machine.node}, ${String(machine.cores)} cores (${machine.cpu}), ${String(machine.memoryGiB)} GiB, ${machine.at}. Medians of ${String(effort.rounds)} rounds, smallest to largest in brackets; ratios are of rounds run in turn.\n\n${text}\n`,
  );
}

await main(process.argv.slice(2));
