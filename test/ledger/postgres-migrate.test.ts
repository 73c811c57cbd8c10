import { randomBytes } from "node:crypto";
import type pg from "pg";
import { afterAll, afterEach, beforeAll, expect, inject, test } from "vitest";
import { migrations as planned, openLedger } from "../../src/compose.js";
import {
  inSchema,
  migrate,
  migrations,
  type MigrationPorts,
} from "../../src/ledger/postgres/migrate.js";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.js";
import type { Migration } from "../../src/ledger/sql/migrations.js";
import { systemClock } from "../../src/runtime/clock.js";
import { silentLogger } from "../../src/runtime/logger.js";
import {
  accept,
  acceptOne,
  claimOf,
  claimOne,
  numbers,
  present,
  see,
  settleOne,
  SUCCEED,
} from "./acts.js";
import { keyed } from "./cases/idempotency.js";
import { inSchemaUrl, newSchema, openAdmin } from "./postgres-factory.js";

const url = inject("postgresUrl");
const all = migrations();
const made: string[] = [];
const ports: MigrationPorts = { clock: systemClock, connect: () => openAdmin(url) };
let admin: pg.Client;

beforeAll(async () => {
  admin = await openAdmin(url);
});
afterEach(async () => {
  for (const schema of made.splice(0)) await admin.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
});
afterAll(() => admin.end());

function place(): { schema: string; label: string } {
  const schema = newSchema();
  made.push(schema);
  return { schema, label: "here" };
}

/** Tables, columns, constraints, indexes and settings, as the server would write them again. */
async function described(schema: string): Promise<string[]> {
  const { rows } = await admin.query<{ line: string }>(
    `SELECT concat_ws(' ', table_name, ordinal_position, column_name, data_type, collation_name,
        character_maximum_length, is_nullable, column_default) AS line
      FROM information_schema.columns WHERE table_schema = $1
    UNION ALL SELECT concat_ws(' ', conrelid::regclass::text, conname, pg_get_constraintdef(oid))
      FROM pg_constraint WHERE connamespace = $1::regnamespace
    UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = $1
    UNION ALL SELECT concat_ws(' ', relname, reloptions::text)
      FROM pg_class WHERE relnamespace = $1::regnamespace
    ORDER BY line`,
    [schema],
  );
  return rows.map(({ line }) => line.replaceAll(schema, "it"));
}

test("the files are numbered from 1 without a gap", () => {
  expect(all.map(({ number }) => number)).toEqual(all.map((_, index) => index + 1));
  expect(all.length).toBeGreaterThan(0);
});

test("step by step gives the same schema as all at once", async () => {
  const [atOnce, byStep] = [place(), place()];
  await migrate(admin, atOnce, all, ports);
  for (const { number } of all) await migrate(admin, byStep, all.slice(0, number), ports);
  expect(await described(byStep.schema)).toEqual(await described(atOnce.schema));
  expect((await described(atOnce.schema)).join("\n")).toMatch(/ck_async_jobs_phase/);
});

test("what was run is recorded once", async () => {
  const here = place();
  await migrate(admin, here, all, ports);
  await migrate(admin, here, all, ports);
  const { rows } = await admin.query(
    `SELECT number, name FROM ${here.schema}.jobtable_migrations ORDER BY number`,
  );
  expect(rows).toEqual(all.map(({ number, name }) => ({ number, name })));
});

test("many that open a schema which is not there yet make it once", async () => {
  const { schema } = place();
  const store = inSchemaUrl(url, schema);
  const open = () => openPostgresLedger({ url: store, clock: systemClock, logger: silentLogger });
  const ledgers = await Promise.all([open(), open(), open(), open()]);
  try {
    for (const ledger of ledgers) await acceptOne(ledger);
    for (const ledger of ledgers) expect(await numbers(ledger)).toEqual([4, 0, 4]);
  } finally {
    await Promise.all(ledgers.map((ledger) => ledger.close()));
  }
});

test("a migration that fails leaves nothing of it, and of those before it in the same run", async () => {
  const here = place();
  const broken: Migration = {
    number: all.length + 1,
    name: "broken",
    sql: "CREATE TABLE :schema.half_done (a integer); SELECT no_such_thing",
  };
  await expect(migrate(admin, here, [...all, broken], ports)).rejects.toThrow(/no_such_thing/);
  expect(await described(here.schema).catch(() => "no schema")).toBe("no schema");
  await migrate(admin, here, all, ports);
  expect((await described(here.schema)).join("\n")).not.toMatch(/half_done/);
});

test("a schema of a newer version is refused, and left as it is", async () => {
  const here = place();
  const later: Migration = { number: 99, name: "later", sql: "SELECT 1" };
  await migrate(admin, here, [...all, later], ports);
  const before = await described(here.schema);
  await expect(
    openPostgresLedger({
      url: inSchemaUrl(url, here.schema),
      clock: systemClock,
      logger: silentLogger,
    }),
  ).rejects.toMatchObject({
    code: "ledger_newer",
    message: expect.stringContaining("later") as string,
  });
  expect(await described(here.schema)).toEqual(before);
});

/** As the first version left it, with a job in every state. */
const OLD_JOBS = `
  INSERT INTO :schema.async_jobs (job_id, task, queue, status, priority, run_at, attempt, max_attempts,
    created_at, started_at, finished_at, last_heartbeat, worker_id, schema_version, error_message,
    payload_json, result_json)
  SELECT rpad('OLD' || n, 26, 'X'), 'echo', 'default', status, 0, now(), least(n, 1), 1, now(), now(),
    CASE WHEN n > 1 THEN now() END, now(), 'worker-0000000a', 1,
    CASE WHEN status IN ('failed', 'timed_out') THEN 'Error: old' END, '{}',
    CASE WHEN status = 'succeeded' THEN '1' END
  FROM (VALUES (0, 'queued'), (1, 'running'), (2, 'succeeded'), (3, 'failed'), (4, 'timed_out'),
    (5, 'cancelled')) AS v (n, status);
  UPDATE :schema.async_counts SET queued = 1, running = 1, terminal = 4`;
const FIRST_VERSION = 2;

/** @returns a place with the schema of the first version and some jobs. */
async function oldPlace(): Promise<{ schema: string; label: string }> {
  const here = place();
  await migrate(admin, here, all.slice(0, FIRST_VERSION), ports);
  await admin.query(inSchema(OLD_JOBS, here.schema));
  return here;
}

test("an older schema is brought up in place, and its jobs go on", async () => {
  const here = await oldPlace();
  const ledger = await openPostgresLedger({
    url: inSchemaUrl(url, here.schema),
    clock: systemClock,
    logger: silentLogger,
  });
  try {
    expect(await numbers(ledger)).toEqual([1, 1, 6]);
    const old = await see(ledger, "OLD0".padEnd(26, "X"));
    expect(old).toMatchObject({ status: "queued", idempotencyKey: null });
    const { job } = await claimOne(ledger);
    expect(await settleOne(ledger, claimOf(job), SUCCEED)).toBe(true);
    const [first] = await accept(ledger, [keyed("k")]);
    expect(await ledger.submit([keyed("k")], { maxDepth: 0 })).toEqual([
      { kind: "repeated", job: present(first) },
    ]);
  } finally {
    await ledger.close();
  }
  const fresh = place();
  await migrate(admin, fresh, all, ports);
  expect(await described(here.schema)).toEqual(await described(fresh.schema));
});

test("many that open an older schema at once bring it up once, while its workers work", async () => {
  const { schema } = await oldPlace();
  const store = inSchemaUrl(url, schema);
  const open = () => openPostgresLedger({ url: store, clock: systemClock, logger: silentLogger });
  const ledgers = await Promise.all([open(), open(), open(), open()]);
  try {
    await Promise.all(ledgers.map((ledger) => accept(ledger, [keyed("k")]).catch(() => null)));
    expect(await numbers(present(ledgers[0]))).toEqual([2, 1, 7]);
  } finally {
    await Promise.all(ledgers.map((ledger) => ledger.close()));
  }
});

test("who only looks is told that there is no ledger, and makes none", async () => {
  const here = place();
  const store = inSchemaUrl(url, here.schema);
  await expect(openLedger(store, { logger: silentLogger, create: false })).rejects.toMatchObject({
    code: "ledger_missing",
    message: expect.stringMatching(
      new RegExp(`^there is no ledger in schema ${here.schema} .+$`),
    ) as string,
  });
  expect(await described(here.schema).catch(() => "no schema")).toBe("no schema");
  await migrate(admin, here, all, ports);
  await (await openLedger(store, { logger: silentLogger, create: false })).close();
});

test("what opening would run is told and not run; run by hand it gives the same", async () => {
  const [here, fresh] = [place(), place()];
  const store = inSchemaUrl(url, here.schema);
  const plan = await planned(store);
  expect(plan).toMatchObject({ from: 0, to: all.length });
  expect(await described(here.schema).catch(() => "no schema")).toBe("no schema");
  await migrate(admin, fresh, all, ports);
  for (const statement of plan.statements) await admin.query(statement);
  expect(await described(here.schema)).toEqual(await described(fresh.schema));
  const nothing = { from: all.length, to: all.length, statements: [] };
  expect(await planned(inSchemaUrl(url, fresh.schema))).toEqual(nothing);
  expect(await planned(store)).toEqual(nothing);
  await (await openLedger(store, { logger: silentLogger, create: false })).close();
  const old = await oldPlace();
  const { from, statements } = await planned(inSchemaUrl(url, old.schema));
  expect([from, statements.length]).toEqual([FIRST_VERSION, 2 * (all.length - FIRST_VERSION)]);
  // Who only looks leaves it as it is.
  await expect(
    openLedger(inSchemaUrl(url, old.schema), { logger: silentLogger, create: false }),
  ).rejects.toMatchObject({ code: "ledger_older" });
  expect((await planned(inSchemaUrl(url, old.schema))).from).toBe(FIRST_VERSION);
});

/** More than migrate.ts takes for small, by leaving most of each page empty. */
const GROW = `ALTER TABLE :schema.async_jobs SET (fillfactor = 10, autovacuum_enabled = off);
  INSERT INTO :schema.async_jobs (job_id, task, queue, status, priority, run_at, attempt, max_attempts,
    created_at, finished_at, schema_version, payload_json)
  SELECT rpad('MORE' || n, 26, 'X'), 'echo', 'default', 'succeeded', 0, now(), 1, 1, now(), now(),
    1, '{}' FROM generate_series(1, 60000) n;
  ALTER TABLE :schema.async_jobs SET (fillfactor = 70, autovacuum_enabled = true);
  ALTER TABLE :schema.async_jobs RESET (autovacuum_enabled)`;
const INDEX = "SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = to_regclass($1)";

async function indexState(schema: string): Promise<boolean | null> {
  const { rows } = await admin.query<{ valid: boolean }>(INDEX, [
    `${schema}.ux_async_jobs_idempotency_key`,
  ]);
  return rows[0]?.valid ?? null;
}

/** A connection whose `query` tells what it is about to run. */
async function overheard(heard: (sql: string) => Promise<void>): Promise<pg.Client> {
  const client = await openAdmin(url);
  const query = client.query.bind(client) as (config: pg.QueryConfig) => Promise<unknown>;
  return Object.assign(client, {
    query: async (config: pg.QueryConfig) => {
      await heard(config.text);
      return query(config);
    },
  });
}

test("on a large table indexes are built beside running workers, and others wait meanwhile", async () => {
  const here = await oldPlace();
  await admin.query(inSchema(GROW, here.schema));
  const built: string[] = [];
  const ledgers: Promise<unknown>[] = [];
  const beside: MigrationPorts = {
    ...ports,
    connect: () =>
      overheard(async (sql) => {
        built.push(sql);
        const builds = built.filter((each) => each.startsWith("DROP")).length;
        if (!sql.startsWith("DROP") || builds < 2) return;
        // Another process opens while the last index is being built, and must neither hold it up nor go on.
        const opening = openPostgresLedger({
          url: inSchemaUrl(url, here.schema),
          clock: systemClock,
          logger: silentLogger,
        });
        ledgers.push(opening.then((ledger) => ledger.close()));
        // What a worker of the older version does goes through: the table is not locked.
        await admin.query(
          inSchema(
            "UPDATE :schema.async_jobs SET last_heartbeat = now() WHERE status = 'running'",
            here.schema,
          ),
        );
      }),
  };
  const migrating = await openAdmin(url);
  try {
    await migrate(migrating, here, all, beside);
  } finally {
    await migrating.end();
  }
  expect(
    built.map((sql) => /^(?:--.*\n)*(\w+ (?:UNIQUE )?INDEX CONCURRENTLY)/.exec(sql)?.[1]),
  ).toEqual([
    "DROP INDEX CONCURRENTLY",
    "CREATE UNIQUE INDEX CONCURRENTLY",
    "DROP INDEX CONCURRENTLY",
    "CREATE INDEX CONCURRENTLY",
  ]);
  await Promise.all(ledgers);
  expect(ledgers).toHaveLength(1);
  expect(await indexState(here.schema)).toBe(true);
  const indexes = async ({ schema }: { schema: string }): Promise<string[]> =>
    (await described(schema)).filter((line) => line.startsWith("CREATE"));
  const fresh = place();
  await migrate(admin, fresh, all, ports);
  expect(await indexes(here)).toEqual(await indexes(fresh));
});

test("an index whose building was broken off is dropped and built again", async () => {
  const here = await oldPlace();
  await admin.query(inSchema(GROW, here.schema));
  const broken: MigrationPorts = {
    ...ports,
    connect: async () => {
      const client = await openAdmin(url);
      await client.query("SET statement_timeout = '1ms'");
      return client;
    },
  };
  await expect(migrate(admin, here, all, broken)).rejects.toThrow(/statement timeout/);
  // What a break later on leaves behind.
  await admin.query(
    inSchema(
      `CREATE UNIQUE INDEX ux_async_jobs_idempotency_key ON :schema.async_jobs (idempotency_key);
       UPDATE pg_index SET indisvalid = false
        WHERE indexrelid = ':schema.ux_async_jobs_idempotency_key'::regclass`,
      here.schema,
    ),
  );
  expect(await indexState(here.schema)).toBe(false);
  await migrate(admin, here, all, ports);
  expect(await indexState(here.schema)).toBe(true);
  expect((await described(here.schema)).join("\n")).toMatch(/UNIQUE INDEX ux_.*COLLATE "C"/);
});

test("who holds the table for long holds up the migration, not the workers behind it", async () => {
  const here = await oldPlace();
  const reader = await openAdmin(url);
  const pauses: number[] = [];
  const clock = {
    ...systemClock,
    timer: (ms: number, fire: () => void) => {
      pauses.push(ms);
      // The reader goes away during the first pause.
      void reader.query("COMMIT").then(fire);
      return () => undefined;
    },
  };
  try {
    await reader.query("BEGIN");
    await reader.query(inSchema("SELECT count(*) FROM :schema.async_jobs", here.schema));
    await migrate(admin, here, all, { ...ports, clock });
    expect(pauses).toEqual([5_000]);
    expect(await indexState(here.schema)).toBe(true);
  } finally {
    await reader.end();
  }
});

test("a user without a right but that to make the schema can do everything", async () => {
  const { schema } = place();
  const user = `plain_${randomBytes(4).toString("hex")}`;
  const { rows } = await admin.query<{ name: string }>("SELECT current_database() AS name");
  await admin.query(`CREATE ROLE ${user} LOGIN PASSWORD 'a-word'`);
  await admin.query(`GRANT CREATE ON DATABASE "${String(rows[0]?.name)}" TO ${user}`);
  try {
    const store = new URL(inSchemaUrl(url, schema));
    store.username = user;
    store.password = "a-word";
    const ledger = await openPostgresLedger({
      url: store.href,
      clock: systemClock,
      logger: silentLogger,
    });
    await acceptOne(ledger);
    expect(await numbers(ledger)).toEqual([1, 0, 1]);
    await ledger.close();
  } finally {
    await admin.query(`DROP OWNED BY ${user} CASCADE`);
    await admin.query(`DROP ROLE ${user}`);
  }
});
