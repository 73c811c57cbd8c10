/** A network that takes everything and gives nothing back, with all connections still open. */
import { expect, inject, test } from "vitest";
import { createEngine } from "../../src/engine/engine.js";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.js";
import { systemClock } from "../../src/runtime/clock.js";
import { silentLogger } from "../../src/runtime/logger.js";
import { defineInline } from "../../src/task/definition.js";
import { createTaskRegistry } from "../../src/task/registry.js";
import { SETTINGS, submitted } from "../engine-rig.js";
import { inSchemaUrl, newSchema, openAdmin } from "../ledger/postgres-factory.js";
import { PostgresProxy } from "../postgres-proxy.js";

/** An answer is waited for for fifteen seconds. */
const LIMIT_MS = 120_000;

test(
  "calls that are never answered end: the worker says so, connects anew, and runs what waits",
  { timeout: LIMIT_MS },
  async () => {
    const server = inject("postgresUrl");
    const schema = newSchema();
    const proxy = await PostgresProxy.start(server);
    const ledgers = await Promise.all(
      [server, proxy.url].map((url) =>
        openPostgresLedger({
          url: inSchemaUrl(url, schema),
          clock: systemClock,
          logger: silentLogger,
        }),
      ),
    );
    const [taking, running] = ledgers.map((ledger, at) =>
      createEngine({
        ledger,
        tasks: createTaskRegistry(defineInline([{ name: "echo", run: (input: unknown) => input }])),
        settings: SETTINGS,
        logger: silentLogger,
        worker: at === 1,
      }),
    ) as [ReturnType<typeof createEngine>, ReturnType<typeof createEngine>];
    try {
      await Promise.all([taking.start(), running.start()]);
      expect(await running.ready()).toMatchObject({ ready: true });
      proxy.swallow();
      const jobId = await submitted({ engine: taking }, "echo");
      await expect.poll(async () => (await running.ready()).ready, { timeout: 20_000 }).toBe(false);
      const job = await taking.wait(jobId, { timeoutMs: LIMIT_MS, until: "end" });
      expect(job).toMatchObject({ status: "succeeded", attempt: 1 });
      await expect.poll(async () => (await running.ready()).ready, { timeout: 20_000 }).toBe(true);
    } finally {
      await Promise.all([taking.stop(), running.stop()]);
      await Promise.all(ledgers.map((ledger) => ledger.close()));
      await proxy.stop();
      const admin = await openAdmin(server);
      await admin.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
      await admin.end();
    }
  },
);
