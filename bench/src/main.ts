/**
 * `npm run bench -- [name...] [--quick] [--plots]`: runs product and peers in turn on this machine,
 * prints a table, and writes bench/results.json and bench/results.md. Names are those of BENCHMARKS;
 * none: all but those of growth, which take long (with `--plots` these too); `growth`: all of these.
 * Those of hours run with `all` and where they are named, for `--minutes=N` (60) at `--per-second=N` jobs (200).
 * `--plots` puts the results into docs/performance.md and its plots, in place of what these benchmarks
 * gave before.
 * Ends with 1 when a benchmark failed, which is not the same as a goal that is not met.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BENCHMARKS, type Benchmark } from "./benchmarks.js";
import { FULL, QUICK, type Effort } from "./effort.js";
import { Ground } from "./ground.js";
import { Missing } from "./missing.js";
import { nowMs } from "./measure.js";
import { machine, versions } from "./machine.js";
import { withRun } from "./plots/performance.js";
import { page, table, type Report, type Result } from "./report.js";

const ROOT = join(import.meta.dirname, "../..");
const PUBLISHED = join(ROOT, "docs/plots/results.json");

async function main(args: readonly string[]): Promise<void> {
  const [quick, plots] = [args.includes("--quick"), args.includes("--plots")];
  const chosen = choose(
    args.filter((arg) => !arg.startsWith("--")),
    plots,
  );
  const ground = new Ground(effortOf(args, quick ? QUICK : FULL));
  process.on("SIGINT", () => {
    void ground.close().finally(() => process.exit(130));
  });
  const results: Result[] = [];
  let postgres: string | null = null;
  try {
    for (const benchmark of chosen) results.push(await runOne(benchmark, ground));
    postgres = ground.postgresVersion;
  } finally {
    await ground.close();
  }
  const report: Report = {
    quick,
    effort: ground.effort,
    machine: machine(),
    versions: versions(postgres),
    results,
  };
  process.stdout.write(`${table(report)}\n`);
  writeFileSync(join(ROOT, "bench/results.json"), `${JSON.stringify(report, null, 2)}\n`);
  writeFileSync(join(ROOT, "bench/results.md"), page(report));
  if (plots) publish(report);
  if (results.some(({ kind }) => kind === "failed")) process.exitCode = 1;
}

/** Leaves the plots and the table to `npm run docs`, which makes them from these runs. */
function publish(report: Report): void {
  const runs = existsSync(PUBLISHED)
    ? (JSON.parse(readFileSync(PUBLISHED, "utf8")) as Report[])
    : [];
  writeFileSync(PUBLISHED, `${JSON.stringify(withRun(runs, report), null, 1)}\n`);
  const made = spawnSync(process.execPath, [join(ROOT, "scripts/docs.mjs")], { stdio: "inherit" });
  if (made.status !== 0) throw new Error("the plots were not made: npm run docs");
}

/** @throws Error for a flag that there is not. */
function effortOf(args: readonly string[], effort: Effort): Effort {
  let { hours } = effort;
  for (const flag of args.filter((arg) => arg.startsWith("--"))) {
    const [, name, value = ""] = /^--(minutes|per-second)=([1-9]\d*)$/.exec(flag) ?? [];
    if (name === "minutes") hours = { ...hours, minutes: Number(value) };
    else if (name === "per-second") hours = { ...hours, perSecond: Number(value) };
    else if (flag !== "--quick" && flag !== "--plots")
      throw new Error(`no flag ${flag}; there are --quick, --plots, --minutes=N, --per-second=N`);
  }
  return { ...effort, hours };
}

/** @throws Error for a name that no benchmark has. */
function choose(names: readonly string[], plots: boolean): readonly Benchmark[] {
  const ofGrowth = ({ name, onlyByName = false }: Benchmark): boolean =>
    name.startsWith("growth-") && !onlyByName;
  const unknown = names.filter(
    (name) =>
      name !== "growth" &&
      name !== "all" &&
      !BENCHMARKS.some((benchmark) => benchmark.name === name),
  );
  if (unknown.length > 0) {
    const known = BENCHMARKS.map(({ name }) => name).join(", ");
    throw new Error(`no benchmark is named ${unknown.join(", ")}; there are ${known}, growth, all`);
  }
  if (names.includes("all")) return BENCHMARKS;
  if (names.length === 0)
    return BENCHMARKS.filter(
      (benchmark) => benchmark.onlyByName !== true && (plots || !ofGrowth(benchmark)),
    );
  return BENCHMARKS.filter(
    (benchmark) =>
      names.includes(benchmark.name) || (names.includes("growth") && ofGrowth(benchmark)),
  );
}

async function runOne(benchmark: Benchmark, ground: Ground): Promise<Result> {
  const { name, about } = benchmark;
  process.stderr.write(`${name}: ${about} ...\n`);
  const began = nowMs();
  try {
    const rows = await benchmark.run(ground);
    const seconds = Math.round((nowMs() - began) / 100) / 10;
    process.stderr.write(`${name}: ${String(seconds)} s\n`);
    return { name, about, kind: "ran", seconds, rows };
  } catch (error) {
    if (error instanceof Missing) {
      process.stderr.write(`${name}: not run: needs ${error.needs}\n`);
      return { name, about, kind: "not run", needs: error.needs };
    }
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    process.stderr.write(`${name}: failed: ${text}\n`);
    return { name, about, kind: "failed", error: text };
  } finally {
    await ground.endBenchmark();
  }
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}
