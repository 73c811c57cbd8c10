import { afterAll, inject } from "vitest";
import { ledgerConformance } from "./conformance.js";
import { PostgresStores } from "./postgres-factory.js";
import { ledgerProperties } from "./properties.js";

const stores = new PostgresStores(inject("postgresUrl"));
afterAll(() => stores.close());

ledgerConformance("postgres", stores);
ledgerProperties("postgres", stores, { runs: 10, testTimeoutMs: 300_000 });
