/** The PostgreSQL ledger behind a proxy that pools transactions: each one is on another connection. */
import { afterAll, describe, expect, inject, test } from "vitest";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.js";
import { systemClock } from "../../src/runtime/clock.js";
import { silentLogger } from "../../src/runtime/logger.js";
import { PostgresPoolingProxy } from "../postgres-pooling-proxy.js";
import { accept, claim, claimOf, newJobs, numbers, SUCCEED } from "./acts.js";
import { admissionCases } from "./cases/admission.js";
import { claimCases } from "./cases/claim.js";
import { Cases } from "./harness.js";
import { inSchemaUrl, newSchema, openAdmin, PostgresStores } from "./postgres-factory.js";

const server = inject("postgresUrl");

describe("one that refuses settings", async () => {
  const proxy = await PostgresPoolingProxy.start(server, false);
  const stores = new PostgresStores(proxy.url);
  afterAll(async () => {
    await stores.close();
    await proxy.stop();
  });
  const cases = new Cases(stores);
  describe("admission", () => admissionCases(cases));
  describe("claim", () => claimCases(cases));
});

test("one that takes settings, and loses what was prepared: calls at once are all sent again", async () => {
  const schema = newSchema();
  const proxy = await PostgresPoolingProxy.start(server, true);
  const ledger = await openPostgresLedger({
    url: inSchemaUrl(proxy.url, schema),
    clock: systemClock,
    logger: silentLogger,
  });
  try {
    const eight = Array.from({ length: 8 }, () => ledger);
    await Promise.all(eight.map((one) => accept(one, newJobs(5))));
    const claimed = (await Promise.all(eight.map((one) => claim(one, 5)))).flat();
    const ends = claimed.map(({ job }) => ({ ...claimOf(job), end: SUCCEED }));
    await Promise.all(eight.map((one) => one.settle(ends)));
    expect(await numbers(ledger)).toEqual([0, 0, 40]);
  } finally {
    await ledger.close();
    await proxy.stop();
    const admin = await openAdmin(server);
    await admin.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    await admin.end();
  }
});
