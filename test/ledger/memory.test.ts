import { describe } from "vitest";
import { planCases } from "./cases/plans.js";
import { ledgerConformance } from "./conformance.js";
import { Cases } from "./harness.js";
import { memoryFactory } from "./memory-factory.js";
import { ledgerProperties } from "./properties.js";

ledgerConformance("memory", memoryFactory);
ledgerProperties("memory", memoryFactory, { runs: 200 });
describe("memory ledger: plans", () => planCases(new Cases(memoryFactory)));
