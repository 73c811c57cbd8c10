/**
 * Everything that must hold before a change is good, in one command, cheapest first. One line per
 * part that holds; the first that does not prints what it said and ends the run with its code.
 * The last line counts the tests: `N passed, N failed`.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const scratch = mkdtempSync(join(tmpdir(), "jobtable-check-"));
const counts = join(scratch, "tests.json");
const bin = (name) => join(root, "node_modules/.bin", name);

/** `loud` parts speak for themselves. `needsCi` parts are too slow for every run on a desk. */
const PARTS = [
  // Task files import the package by its own name, which leads to what was built.
  { name: "build", command: [process.execPath, "scripts/build.mjs"] },
  { name: "types", command: [bin("tsc"), "--noEmit"] },
  { name: "public types", command: [bin("tsc"), "-p", "tsconfig.public.json"] },
  { name: "lint", command: [bin("eslint"), ".", "--max-warnings", "0"] },
  { name: "format", command: [bin("prettier"), "--check", "--log-level", "warn", "."] },
  { name: "imports", command: [bin("depcruise"), "src", "test", "--output-type", "err-long"] },
  { name: "docs", command: [process.execPath, "scripts/docs.mjs", "--check"] },
  // Compiles better-sqlite3 once more, which takes a minute or two where no binary can be fetched.
  { name: "package", command: [process.execPath, "scripts/pack-test.mjs"], needsCi: true },
  {
    name: "tests",
    command: [
      bin("vitest"),
      "run",
      "--reporter=dot",
      "--reporter=json",
      `--outputFile.json=${counts}`,
    ],
    loud: true,
  },
];

function run({ name, command: [file, ...args], loud = false }) {
  const began = performance.now();
  const { status, stdout, stderr } = spawnSync(file, args, {
    cwd: root,
    // Vitest colours what it prints to files too.
    env: process.stdout.isTTY ? process.env : { ...process.env, NO_COLOR: "1" },
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
    stdio: ["ignore", ...(loud ? ["inherit", "inherit"] : ["pipe", "pipe"])],
  });
  if (status !== 0) {
    if (!loud) process.stderr.write(stdout + stderr);
    process.stderr.write(`check: ${name} failed\n`);
    return status ?? 1;
  }
  const seconds = ((performance.now() - began) / 1_000).toFixed(1);
  process.stdout.write(`check: ${name} ok (${seconds} s)\n`);
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
  for (const part of PARTS) {
    if (part.needsCi && !process.env.CI) continue;
    process.exitCode = run(part);
    if (process.exitCode !== 0) break;
  }
  printCounts();
} finally {
  rmSync(scratch, { recursive: true });
}
