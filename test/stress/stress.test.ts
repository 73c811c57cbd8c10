/**
 * The stress run on every ledger. `npm run stress` gives it three seconds for each and prints the
 * counts; within the tests it is shorter.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Ledger } from "../../src/ledger/ledger.js";
import { openMemoryLedger } from "../../src/ledger/memory/memory-ledger.js";
import { openSqliteLedger } from "../../src/ledger/sqlite/sqlite-ledger.js";
import { systemClock } from "../../src/runtime/clock.js";
import { silentLogger } from "../../src/runtime/logger.js";
import { stress } from "./stress.js";

const durationMs = Number(process.env["JOBTABLE_TEST_STRESS_MS"] ?? 500);

async function run(name: string, ledgers: readonly [Ledger, ...Ledger[]]): Promise<void> {
  try {
    const counts = await stress(ledgers, { durationMs, maxDepth: 16 });
    process.stdout.write(`stress on ${name}: ${JSON.stringify(counts)}\n`);
    expect(counts.accepted).toBeGreaterThan(0);
    expect(counts.ended).toBe(counts.accepted);
    expect(counts.waits).toBeGreaterThan(0);
  } finally {
    await Promise.all(ledgers.map((ledger) => ledger.close()));
  }
}

test("memory: the books balance under stress", async () => {
  await run("memory", [openMemoryLedger({ clock: systemClock })]);
});

test("sqlite: the books balance under stress, over two handles on one file", async () => {
  const folder = mkdtempSync(join(tmpdir(), "jobtable-stress-"));
  try {
    const open = () =>
      openSqliteLedger({
        path: join(folder, "jobs.db"),
        clock: systemClock,
        logger: silentLogger,
      });
    await run("sqlite", [await open(), await open()]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
