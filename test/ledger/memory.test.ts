import { ledgerConformance } from "./conformance.js";
import { memoryFactory } from "./memory-factory.js";

ledgerConformance("memory", memoryFactory);
