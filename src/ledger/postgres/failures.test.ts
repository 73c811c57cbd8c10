import { describe, expect, test } from "vitest";
import { LedgerError } from "../../job/errors.js";
import { breaksConnection, explain, isLostRace, usedValue } from "./failures.js";

function fault(code: string, message = "it said", detail?: string): Error {
  return Object.assign(new Error(message), { code, ...(detail === undefined ? {} : { detail }) });
}

describe("what a fault means", () => {
  test.each([
    ["53100", "ledger_full"],
    ["53300", "ledger_unavailable"],
    ["57P01", "ledger_unavailable"],
    ["57014", "ledger_unavailable"],
    ["28P01", "ledger_refused"],
    ["3D000", "ledger_refused"],
    ["42501", "ledger_refused"],
    ["25006", "ledger_unavailable"],
    ["40P01", "ledger_unavailable"],
    ["XX001", "ledger_unreadable"],
    ["42P01", "ledger_unreadable"],
    ["ECONNREFUSED", "ledger_unavailable"],
    ["EPIPE", "ledger_unavailable"],
    ["ENOTFOUND", "ledger_unavailable"],
  ])("%s is %s", (code, expected) => {
    const error = explain(fault(code, "two\nlines"), "host:1/db");
    expect(error).toBeInstanceOf(LedgerError);
    expect(error).toMatchObject({ code: expected });
    expect(error.message).toMatch(/^the ledger host:1\/db: [^\n]+two lines\)$/);
  });

  test("a fault of the call stays one", () => {
    const error = explain(fault("22003", "integer out of range"), "here");
    expect(error).not.toBeInstanceOf(LedgerError);
    expect(error.message).toBe("integer out of range (22003)");
  });

  test("several addresses that all refuse are one line", () => {
    const refused = new AggregateError([new Error("no"), new Error("never")]);
    expect(explain(refused, "here").message).toContain("(no, never)");
  });

  test("what has been explained is not explained again", () => {
    const known = new LedgerError("ledger_newer", "too new");
    expect(explain(known, "here")).toBe(known);
  });

  test("only what a race undid is run again, only a fault of the connection ends it", () => {
    expect(["40001", "40P01"].every((code) => isLostRace(fault(code)))).toBe(true);
    expect(["40002", "57014", "08006", "EPIPE"].some((code) => isLostRace(fault(code)))).toBe(
      false,
    );
    expect(
      ["57P01", "08006", "EPIPE", "26000", "25006"].every((code) => breaksConnection(fault(code))),
    ).toBe(true);
    expect(["23505", "40P01", "57014", "53100"].some((code) => breaksConnection(fault(code)))).toBe(
      false,
    );
  });

  test("a used id is told by the index", () => {
    expect(
      usedValue(fault("23505", "duplicate key", "Key (job_id)=(X) already exists.")),
    ).toMatchObject({ detail: expect.stringContaining("(X)") as string });
    expect(usedValue(fault("23505"))).toEqual({ index: "", detail: "" });
    expect(usedValue(fault("23514"))).toBeNull();
  });
});
