/**
 * The stress run on the ledgers that need no server; postgres.test.ts has the other. `npm run stress`
 * gives it three seconds for each and prints the counts; within the tests it is shorter.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "vitest";
import { openMemoryLedger } from "../../src/ledger/memory/memory-ledger.js";
import { openSqliteLedger } from "../../src/ledger/sqlite/sqlite-ledger.js";
import { systemClock } from "../../src/runtime/clock.js";
import { silentLogger } from "../../src/runtime/logger.js";
import { run } from "./run.js";

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
