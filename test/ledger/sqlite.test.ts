import { ledgerConformance } from "./conformance.js";
import { ledgerProperties } from "./properties.js";
import { sqliteFactory } from "./sqlite-factory.js";

ledgerConformance("sqlite", sqliteFactory);
ledgerProperties("sqlite", sqliteFactory, { runs: 15, testTimeoutMs: 120_000 });
