import { ledgerConformance } from "./conformance.js";
import { ledgerProperties } from "./properties.js";
import { sqliteFactory } from "./sqlite-factory.js";

ledgerConformance("sqlite", sqliteFactory);
ledgerProperties("sqlite", sqliteFactory, { runs: 30, testTimeoutMs: 120_000 });
