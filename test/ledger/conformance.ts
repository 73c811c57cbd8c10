/**
 * The one suite that every ledger passes: memory, SQLite, PostgreSQL, each with a factory and one
 * call. It holds every numbered promise of the contract and every verb's sentence in
 * src/ledger/ledger.ts, over one handle and, where a store can be shared, over two.
 *
 * What a factory gives is in harness.ts: `{ shared, open() }`, and `open` answers with
 * `{ ledger, second?, nowMs(), age(ms), close() }` on an empty store of its own.
 */
import { describe } from "vitest";
import { admissionCases } from "./cases/admission.js";
import { attemptErrorCases } from "./cases/attempt-errors.js";
import { cancelCases } from "./cases/cancel.js";
import { claimCases } from "./cases/claim.js";
import { closingCases } from "./cases/closing.js";
import { heartbeatCases } from "./cases/heartbeat.js";
import { idempotencyCases } from "./cases/idempotency.js";
import { inspectCases } from "./cases/inspect.js";
import { planCases } from "./cases/plans.js";
import { readCases } from "./cases/reads.js";
import { retentionCases } from "./cases/retention.js";
import { settleCases } from "./cases/settle.js";
import { sweepCases } from "./cases/sweep.js";
import { textCases } from "./cases/text.js";
import { watchCases } from "./cases/watch.js";
import { wholeCases } from "./cases/whole.js";
import { Cases, type LedgerFactory } from "./harness.js";

export type { LedgerFactory, LedgerHarness } from "./harness.js";

/** Registers the suite. @param name of the ledger, for the report. */
export function ledgerConformance(name: string, factory: LedgerFactory): void {
  const cases = new Cases(factory);
  describe(`${name} ledger`, () => {
    describe("admission", () => admissionCases(cases));
    describe("idempotency", () => idempotencyCases(cases));
    describe("whole calls", () => wholeCases(cases));
    describe("claim", () => claimCases(cases));
    describe("settle", () => settleCases(cases));
    describe("attempt errors", () => attemptErrorCases(cases));
    describe("cancel", () => cancelCases(cases));
    describe("heartbeat", () => heartbeatCases(cases));
    describe("sweeps", () => sweepCases(cases));
    describe("retention", () => retentionCases(cases));
    describe("reads", () => readCases(cases));
    describe("inspect", () => inspectCases(cases));
    describe("plans", () => planCases(cases));
    describe("watching", () => watchCases(cases));
    describe("text", () => textCases(cases));
    describe("closing", () => closingCases(cases));
  });
}
