/** The same engine on each kind of store, in real time: what a store does differently shows here. */
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { inject } from "vitest";
import type { Engine, EngineSettings } from "../../src/engine/api.js";
import { createEngine } from "../../src/engine/engine.js";
import type { Ledger } from "../../src/ledger/ledger.js";
import { openMemoryLedger } from "../../src/ledger/memory/memory-ledger.js";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.js";
import { openSqliteLedger } from "../../src/ledger/sqlite/sqlite-ledger.js";
import { systemClock } from "../../src/runtime/clock.js";
import { silentLogger, type Logger } from "../../src/runtime/logger.js";
import { defineInline } from "../../src/task/definition.js";
import { createTaskRegistry } from "../../src/task/registry.js";
import type { TaskOptions } from "../../src/task/task.js";
import { SETTINGS } from "../engine-rig.js";
import { inSchemaUrl, newSchema, openAdmin } from "../ledger/postgres-factory.js";
import { FAST_FOLDER } from "../ledger/sqlite-factory.js";

export interface Store {
  /** One more handle, as another process would have; of memory there is only one. */
  open(): Promise<Ledger>;
  /** Removes the store; its ledgers are closed by then. */
  remove(): Promise<void>;
}

const opening = { clock: systemClock, logger: silentLogger };

export const STORES: Readonly<Record<string, () => Promise<Store>>> = {
  memory: () => {
    const ledger = openMemoryLedger(opening);
    return Promise.resolve({
      open: () => Promise.resolve(ledger),
      remove: () => Promise.resolve(),
    });
  },
  sqlite: async () => {
    const folder = await mkdtemp(join(FAST_FOLDER, "jobtable-engine-"));
    return {
      open: () => openSqliteLedger({ ...opening, path: join(folder, "jobs.db") }),
      remove: () => rm(folder, { recursive: true }),
    };
  },
  postgres: () => {
    const server = inject("postgresUrl");
    const schema = newSchema();
    return Promise.resolve({
      open: () => openPostgresLedger({ ...opening, url: inSchemaUrl(server, schema) }),
      remove: async () => {
        const admin = await openAdmin(server);
        await admin.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
        await admin.end();
      },
    });
  },
};

/** Two engines on one store: the first takes jobs, the second runs them. Both are stopped afterwards, whatever happens. */
export async function withTwoEngines(
  newStore: () => Promise<Store>,
  tasks: readonly TaskOptions[],
  use: (taking: Engine, running: Engine) => Promise<void>,
  {
    settings = {},
    logger = silentLogger,
  }: { readonly settings?: Partial<EngineSettings>; readonly logger?: Logger } = {},
): Promise<void> {
  const store = await newStore();
  const ledgers = [await store.open(), await store.open()] as const;
  const [taking, running] = ledgers.map((ledger, at) =>
    createEngine({
      ledger,
      tasks: createTaskRegistry(defineInline(tasks)),
      settings: { ...SETTINGS, asyncMaxQueue: 100_000, ...settings },
      logger,
      worker: at === 1,
    }),
  ) as [Engine, Engine];
  try {
    await Promise.all([taking.start(), running.start()]);
    await use(taking, running);
  } finally {
    await Promise.all([taking.stop(), running.stop()]);
    await Promise.all(ledgers.map((ledger) => ledger.close()));
    await store.remove();
  }
}
