import { inject } from "vitest";
import { ledgerConformance } from "./conformance.js";
import { postgresFactory } from "./postgres-factory.js";

ledgerConformance("postgres", postgresFactory(inject("postgresUrl")));
