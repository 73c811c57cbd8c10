/**
 * Everything that must hold before a change is good, in one command, cheapest first. One line per
 * part that holds; one that does not prints what it said and ends the run with its code.
 * The last line counts the tests: `N passed, N failed`.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const scratch = mkdtempSync(join(tmpdir(), "jobtable-check-"));
const counts = join(scratch, "tests.json");
const bin = (name) => join(root, "node_modules/.bin", name);

/** `loud` parts speak for themselves. `needsCi` parts are too slow for every run on a desk. */
const PARTS = {
  // Task files import the package by its own name, which leads to what was built.
  build: { command: [process.execPath, "scripts/build.mjs"] },
  types: { command: [bin("tsc"), "--noEmit"] },
  "public types": { command: [bin("tsc"), "-p", "tsconfig.public.json"] },
  lint: { command: [bin("eslint"), ".", "--max-warnings", "0"] },
  format: { command: [bin("prettier"), "--check", "--log-level", "warn", "."] },
  imports: { command: [bin("depcruise"), "src", "test", "--output-type", "err-long"] },
  docs: { command: [process.execPath, "scripts/docs.mjs", "--check"] },
  // Asks the registry for the dependencies.
  package: { command: [process.execPath, "scripts/pack-test.mjs"], needsCi: true },
  tests: {
    command: [
      bin("vitest"),
      "run",
      "--reporter=dot",
      "--reporter=json",
      `--outputFile.json=${counts}`,
    ],
    loud: true,
    env: { JOBTABLE_TEST_BUILT: "1" },
  },
};

/** One stage after the other; the rows of a stage run side by side, each from left to right. */
const STAGES = [
  [["build"]],
  [["lint"], ["types", "public types", "format", "imports", "docs", "package"]],
  [["tests"]],
];

/** @returns the exit code. */
async function run(name) {
  const { command, loud = false, needsCi = false, env = {} } = PARTS[name];
  if (needsCi && !process.env.CI) return 0;
  const [file, ...args] = command;
  const began = performance.now();
  const child = spawn(file, args, {
    cwd: root,
    // Vitest colours what it prints to files too.
    env: { ...process.env, ...(process.stdout.isTTY ? {} : { NO_COLOR: "1" }), ...env },
    stdio: ["ignore", ...(loud ? ["inherit", "inherit"] : ["pipe", "pipe"])],
  });
  let said = "";
  for (const output of [child.stdout, child.stderr])
    output?.setEncoding("utf8").on("data", (text) => (said += text));
  const [code] = await once(child, "close");
  if (code !== 0) {
    process.stderr.write(`${said}check: ${name} failed\n`);
    return code ?? 1;
  }
  const seconds = ((performance.now() - began) / 1_000).toFixed(1);
  process.stdout.write(`check: ${name} ok (${seconds} s)\n`);
  return 0;
}

/** Ends with the first part that fails. */
async function runRow(names) {
  for (const name of names) {
    const code = await run(name);
    if (code !== 0) return code;
  }
  return 0;
}

function printCounts() {
  let report;
  try {
    report = JSON.parse(readFileSync(counts, "utf8"));
  } catch {
    return; // The tests did not come as far as a report.
  }
  const { numPassedTests, numFailedTests, numPendingTests } = report;
  const skipped = numPendingTests > 0 ? `, ${numPendingTests} skipped` : "";
  process.stdout.write(`${numPassedTests} passed, ${numFailedTests} failed${skipped}\n`);
}

try {
  for (const rows of STAGES) {
    const codes = await Promise.all(rows.map(runRow));
    process.exitCode = codes.find((code) => code !== 0) ?? 0;
    if (process.exitCode !== 0) break;
  }
  printCounts();
} finally {
  rmSync(scratch, { recursive: true });
}
