import { randomBytes } from "node:crypto";
import type pg from "pg";
import { afterAll, afterEach, beforeAll, expect, inject, test } from "vitest";
import { migrate, readMigrations, type Migration } from "../../src/ledger/postgres/migrate.js";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.js";
import { systemClock } from "../../src/runtime/clock.js";
import { silentLogger } from "../../src/runtime/logger.js";
import { acceptOne, numbers } from "./acts.js";
import { inSchemaUrl, newSchema, openAdmin } from "./postgres-factory.js";

const url = inject("postgresUrl");
const all = readMigrations();
const made: string[] = [];
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
  await migrate(admin, atOnce, all);
  for (const { number } of all) await migrate(admin, byStep, all.slice(0, number));
  expect(await described(byStep.schema)).toEqual(await described(atOnce.schema));
  expect((await described(atOnce.schema)).join("\n")).toMatch(/ck_async_jobs_phase/);
});

test("what was run is recorded once", async () => {
  const here = place();
  await migrate(admin, here, all);
  await migrate(admin, here, all);
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
  await expect(migrate(admin, here, [...all, broken])).rejects.toThrow(/no_such_thing/);
  expect(await described(here.schema).catch(() => "no schema")).toBe("no schema");
  await migrate(admin, here, all);
  expect((await described(here.schema)).join("\n")).not.toMatch(/half_done/);
});

test("a schema of a newer version is refused, and left as it is", async () => {
  const here = place();
  const later: Migration = { number: 99, name: "later", sql: "SELECT 1" };
  await migrate(admin, here, [...all, later]);
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
