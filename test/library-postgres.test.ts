/** Jobs that are part of a transaction of the program's own, on a real server. */
import type pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from "vitest";
import { createJobtable, task, type TransactionClient } from "../src/index.js";
import { inSchemaUrl, newSchema, openAdmin } from "./ledger/postgres-factory.js";

const ran: string[] = [];
const note = task({
  name: "note",
  run(what: string) {
    ran.push(what);
    return { noted: what };
  },
});
const schema = newSchema();
let client: pg.Client;
let jobtable: ReturnType<typeof create>;

function create() {
  const store = inSchemaUrl(inject("postgresUrl"), schema);
  return createJobtable({ store, tasks: [note] });
}

beforeAll(async () => {
  client = await openAdmin(inject("postgresUrl"));
  jobtable = create();
  await jobtable.start();
  await client.query(`CREATE TABLE ${schema}.images (path text)`);
});
afterEach(async () => {
  await client.query("ROLLBACK");
});
afterAll(async () => {
  await jobtable.stop();
  await client.query(`DROP SCHEMA ${schema} CASCADE`);
  await client.end();
});

const insert = (path: string) =>
  client.query(`INSERT INTO ${schema}.images (path) VALUES ($1)`, [path]);
const images = async (): Promise<unknown[]> =>
  (await client.query<{ path: string }>(`SELECT path FROM ${schema}.images`)).rows;

describe("a job in the program's own transaction", () => {
  test("runs once that is committed, and not before", async () => {
    await client.query("BEGIN");
    await insert("a.png");
    const job = await jobtable.submit("note", "committed", { client });
    expect(await jobtable.get(job)).toBeNull();
    await client.query("COMMIT");
    expect(await jobtable.wait(job)).toMatchObject({ status: "succeeded" });
    expect(await jobtable.result(job)).toMatchObject({ output: { noted: "committed" } });
    expect(await images()).toEqual([{ path: "a.png" }]);
  });

  test("never existed when that is rolled back, nor takes any room", async () => {
    const before = await jobtable.counts();
    await client.query("BEGIN");
    await insert("b.png");
    const [one, other] = await jobtable.submitMany(
      [
        { task: "note", input: "rolled back" },
        { task: "note", input: "rolled back", idempotencyKey: "k" },
      ],
      { client },
    );
    await client.query("ROLLBACK");
    expect([await jobtable.get(one), await jobtable.get(other)]).toEqual([null, null]);
    expect(await jobtable.counts()).toEqual(before);
    // Its key is free, too.
    const job = await jobtable.submit("note", "after all", { idempotencyKey: "k" });
    expect(await jobtable.wait(job)).toMatchObject({ status: "succeeded" });
    expect(ran).not.toContain("rolled back");
  });

  test("many are committed together", async () => {
    await client.query("BEGIN");
    const jobs = await jobtable.submitMany(
      [1, 2, 3].map((n) => ({ task: "note" as const, input: `many ${String(n)}` })),
      { client },
    );
    await client.query("COMMIT");
    for (const job of jobs) expect(await jobtable.wait(job)).toMatchObject({ status: "succeeded" });
    expect(ran.filter((what) => what.startsWith("many")).sort()).toEqual([
      "many 1",
      "many 2",
      "many 3",
    ]);
  });

  test("is refused without a transaction, for bad input, and on a store that is not PostgreSQL", async () => {
    await expect(jobtable.submit("note", "x", { client })).rejects.toMatchObject({
      code: "invalid_config",
      message: expect.stringContaining("in no transaction") as string,
    });
    const elsewhere = createJobtable({ store: "memory", tasks: [note] });
    const never: TransactionClient = { query: () => Promise.reject(new Error("not asked")) };
    await expect(elsewhere.submit("note", "x", { client: never })).rejects.toMatchObject({
      code: "invalid_config",
      message: expect.stringContaining("only with a PostgreSQL store") as string,
    });
    await elsewhere.stop();
  });
});
