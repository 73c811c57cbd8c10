/**
 * What an engine with nothing to do asks of its store: little, however many slots it has. In real
 * time, with a short poll interval, which stands for the longer one of the settings: idle cost is a
 * claim per poll, and a beat and a round of maintenance now and then.
 */
import { expect, inject, test } from "vitest";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.js";
import { systemClock } from "../../src/runtime/clock.js";
import { silentLogger } from "../../src/runtime/logger.js";
import { createEngine } from "../../src/engine/engine.js";
import { defineInline } from "../../src/task/definition.js";
import { createTaskRegistry } from "../../src/task/registry.js";
import { HeldTask, SETTINGS } from "../engine-rig.js";
import { inSchemaUrl, newSchema, openAdmin } from "../ledger/postgres-factory.js";
import { PostgresProxy } from "../postgres-proxy.js";

const POLLS = 20;
const POLL_MS = 50;
/** A round of maintenance, a beat, and a probe of the listening connection may fall into the time. */
const MAINTENANCE = 12;

test("statements at the server: one per poll, with one slot as with sixty-four", async () => {
  const server = inject("postgresUrl");
  const counts: number[] = [];
  for (const maxWorkers of [1, 64]) counts.push(await statementsOf(server, maxWorkers));
  for (const count of counts) {
    // It did poll, however busy the machine is.
    expect(count).toBeGreaterThanOrEqual(POLLS / 4);
    expect(count).toBeLessThanOrEqual(POLLS + MAINTENANCE);
  }
});

async function statementsOf(server: string, maxWorkers: number): Promise<number> {
  const proxy = await PostgresProxy.start(server);
  const schema = newSchema();
  const url = inSchemaUrl(proxy.url, schema);
  const ledger = await openPostgresLedger({ url, clock: systemClock, logger: silentLogger });
  const engine = createEngine({
    ledger,
    tasks: createTaskRegistry(defineInline([new HeldTask("x").options])),
    settings: { ...SETTINGS, maxWorkers, pollIntervalMs: POLL_MS, asyncTimeoutMs: 300_000 },
    logger: silentLogger,
    worker: true,
  });
  try {
    await engine.start();
    await pause(5 * POLL_MS);
    const before = proxy.statements;
    await pause(POLLS * POLL_MS);
    return proxy.statements - before;
  } finally {
    await engine.stop();
    await ledger.close();
    await proxy.stop();
    const admin = await openAdmin(server);
    await admin.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    await admin.end();
  }
}

/** Idleness is a matter of time passing. */
function pause(ms: number): Promise<void> {
  return new Promise((resolve) => systemClock.timer(ms, resolve));
}
