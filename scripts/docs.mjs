/**
 * Writes what derives from the code, or from the benchmarks' results: the tables of docs/, between
 * their marks, the plots, and the files of schemas/. `--check` changes nothing and fails where a file is not as it would be written.
 */
import { createJiti } from "jiti";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { format } from "prettier";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const load = (path) => createJiti(import.meta.url).import(join(root, path));
const source = (path) => load(join("src", path));
const { flagOf, SETTING_NAMES, settingRow } = await source("config/settings.ts");
const { planJsonSchema } = await source("plan/file/schema.ts");
const { plots, tables } = await load("bench/src/plots/performance.ts");
const { expectation, formatValue, readValue } = await source("config/values.ts");

const cell = (text) => text.replaceAll("|", "\\|");
const code = (text) => `\`${text}\``;

function defaultOf(row) {
  if (row.default === null) return "none";
  const shown = code(formatValue(row, readValue(row, row.default).value));
  return row.defaultInMemory === undefined
    ? shown
    : `${shown}, in memory ${code(row.defaultInMemory)}`;
}

function settingsTable() {
  const rows = SETTING_NAMES.map((name) => {
    const row = settingRow(name);
    const env = row.env.map(code).join("<br>");
    return [code(name), code(flagOf(name)), env, defaultOf(row), row.meaning, expectation(row)];
  });
  const head = ["setting", "flag", "environment", "default", "meaning", "accepts"];
  return [head, head.map(() => "---"), ...rows]
    .map((cells) => `| ${cells.map(cell).join(" | ")} |`)
    .join("\n");
}

const runs = JSON.parse(readFileSync(join(root, "docs/plots/results.json"), "utf8"));

const TABLES = [
  { file: "docs/settings.md", mark: "settings", make: settingsTable },
  { file: "docs/performance.md", mark: "results", make: () => tables(runs) },
];
const GENERATED = [
  {
    file: "schemas/plan.schema.json",
    parser: "json",
    make: () => JSON.stringify(planJsonSchema()),
  },
];

function write(file, present, wanted) {
  if (wanted === present) return;
  if (process.argv.includes("--check")) {
    process.stderr.write(`${file} is not what the code says: run npm run docs\n`);
    process.exitCode = 1;
  } else writeFileSync(join(root, file), wanted);
}

for (const { file, mark, make } of TABLES) {
  const present = readFileSync(join(root, file), "utf8");
  const [begin, end] = [`<!-- ${mark}: begin -->`, `<!-- ${mark}: end -->`];
  const from = present.indexOf(begin);
  const to = present.indexOf(end);
  if (from < 0 || to < from) throw new Error(`${file}: the marks ${begin} and ${end} are missing`);
  const filled = `${present.slice(0, from + begin.length)}\n\n${make()}\n\n${present.slice(to)}`;
  write(file, present, await format(filled, { parser: "markdown", printWidth: 100 }));
}

for (const { file, parser, make } of GENERATED) {
  const path = join(root, file);
  const present = existsSync(path) ? readFileSync(path, "utf8") : "";
  write(file, present, await format(make(), { parser, printWidth: 100 }));
}

for (const [name, svg] of plots(runs)) {
  const file = join("docs/plots", name);
  const present = existsSync(join(root, file)) ? readFileSync(join(root, file), "utf8") : "";
  write(file, present, svg);
}
