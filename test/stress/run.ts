/** One stress run on handles of one store: prints the counts, and says whether the books balance. */
import { expect } from "vitest";
import type { Ledger } from "../../src/ledger/ledger.js";
import { stress } from "./stress.js";

const durationMs = Number(process.env["JOBTABLE_TEST_STRESS_MS"] ?? 500);

/** Closes the handles. */
export async function run(name: string, ledgers: readonly [Ledger, ...Ledger[]]): Promise<void> {
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
