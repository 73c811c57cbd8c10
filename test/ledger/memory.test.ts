import { ledgerConformance } from "./conformance.js";
import { memoryFactory } from "./memory-factory.js";
import { ledgerProperties } from "./properties.js";

ledgerConformance("memory", memoryFactory);
ledgerProperties("memory", memoryFactory, { runs: 200 });
