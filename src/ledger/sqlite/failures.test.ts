import { describe, expect, test } from "vitest";
import { explain } from "./failures.js";

describe("what a fault means", () => {
  test.each([
    Object.assign(new Error("was compiled against a different Node.js version"), {
      code: "ERR_DLOPEN_FAILED",
    }),
    new Error("Could not locate the bindings file. Tried:\n → /app/build/better_sqlite3.node"),
  ])("a library that does not fit this Node.js is named, with what to do: %s", (error) => {
    const { failure, ofStore } = explain(error, "/data/jobs.db");
    expect(failure).toEqual({
      failed: true,
      code: "ledger_unavailable",
      detail: `the ledger /data/jobs.db: better-sqlite3 was not installed for this Node.js (${process.version}): run \`npm rebuild better-sqlite3\` with it`,
    });
    expect(ofStore).toBe(true);
  });

  test("a fault of one call is no fault of the store", () => {
    const error = Object.assign(new Error("UNIQUE constraint failed"), {
      code: "SQLITE_CONSTRAINT_UNIQUE",
    });
    expect(explain(error, "/data/jobs.db")).toEqual({
      failure: { failed: true, code: null, detail: "UNIQUE constraint failed" },
      ofStore: false,
      reopen: false,
    });
  });

  test.each([
    ["SQLITE_FULL", "ledger_full", false],
    ["SQLITE_BUSY_SNAPSHOT", "ledger_unavailable", false],
    ["SQLITE_IOERR_WRITE", "ledger_unavailable", true],
    ["SQLITE_NOTADB", "ledger_unreadable", true],
  ])("%s is %s", (code, ledgerCode, reopen) => {
    const fault = explain(Object.assign(new Error("no"), { code }), "/data/jobs.db");
    expect(fault).toMatchObject({ failure: { code: ledgerCode }, ofStore: true, reopen });
  });
});
