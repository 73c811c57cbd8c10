/** The stress run on PostgreSQL, with the same books as in stress.test.ts. */
import { afterAll, inject, test } from "vitest";
import { PostgresStores } from "../ledger/postgres-factory.js";
import { run } from "./run.js";

const stores = new PostgresStores(inject("postgresUrl"));
afterAll(() => stores.close());

test("postgres: the books balance under stress, over two handles on one schema", async () => {
  const store = await stores.open();
  try {
    await run("postgres", [store.ledger, await store.second()]);
  } finally {
    await store.close();
  }
});
