import { ledgerConformance } from "./conformance.js";
import { sqliteFactory } from "./sqlite-factory.js";

ledgerConformance("sqlite", sqliteFactory);
