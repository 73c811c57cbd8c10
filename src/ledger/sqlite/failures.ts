/**
 * What a fault of SQLite means. Two kinds matter: the store could not do its work (full, unreachable,
 * damaged: nothing of the transaction is recorded and every call in it fails alike), or one call was
 * at fault (a constraint, a value out of range), which must not fail its neighbours.
 */
import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { LedgerError, type ErrorCode } from "../../job/errors.js";
import type { Failure, LedgerCode } from "./protocol.js";

/** With less room than this, an I/O error while a file grows is a full disk that SQLite could not name. */
const HARDLY_ANY_ROOM_BYTES = 1024 * 1024;

/** The store's own faults, by the primary part of SQLite's code. */
const STORE_FAULTS: Readonly<Record<string, { readonly code: LedgerCode; readonly what: string }>> =
  {
    FULL: { code: "ledger_full", what: "its disk is full: make room" },
    BUSY: {
      code: "ledger_unavailable",
      what: "another process kept it locked for too long: try again, or end that process",
    },
    LOCKED: { code: "ledger_unavailable", what: "it is locked: try again" },
    IOERR: { code: "ledger_unavailable", what: "it could not be read or written: check the disk" },
    CANTOPEN: {
      code: "ledger_unavailable",
      what: "it could not be opened: check path and permissions",
    },
    READONLY: { code: "ledger_unavailable", what: "it can only be read: check permissions" },
    PERM: { code: "ledger_unavailable", what: "access was denied: check permissions" },
    AUTH: { code: "ledger_unavailable", what: "access was denied: check permissions" },
    PROTOCOL: { code: "ledger_unavailable", what: "its lock could not be taken: try again" },
    NOMEM: { code: "ledger_unavailable", what: "memory ran out: make room" },
    NOTADB: { code: "ledger_unreadable", what: "it is not a SQLite database: name another file" },
    CORRUPT: { code: "ledger_unreadable", what: "it is damaged: restore it from a copy" },
  };

export interface Fault {
  readonly failure: Failure;
  /** Of the store, not of one call. */
  readonly ofStore: boolean;
  /** The connection can't be trusted any more: open a new one. */
  readonly reopen: boolean;
}

/** @param path the database file, for the message. */
export function explain(error: unknown, path: string): Fault {
  if (error instanceof LedgerError && isLedgerCode(error.code))
    return { failure: failure(error.code, error.message), ofStore: false, reopen: false };
  if (lacksLibrary(error))
    return {
      failure: failure(
        "ledger_unavailable",
        `the ledger ${path}: better-sqlite3 was not installed for this Node.js (${process.version}): run \`npm rebuild better-sqlite3\` with it`,
      ),
      ofStore: true,
      reopen: true,
    };
  const sqliteCode = codeOf(error);
  const detail = error instanceof Error ? error.message : String(error);
  const primary = sqliteCode?.split("_")[1] ?? "";
  const known = STORE_FAULTS[primary];
  if (known === undefined) return { failure: failure(null, detail), ofStore: false, reopen: false };
  const full = primary === "IOERR" && hasHardlyAnyRoom(path) ? STORE_FAULTS["FULL"] : undefined;
  const { code, what } = full ?? known;
  return {
    failure: failure(code, `the ledger ${path}: ${what} (${String(sqliteCode)}: ${detail})`),
    ofStore: true,
    reopen: primary !== "FULL" && primary !== "BUSY",
  };
}

export function toError({ code, detail }: Failure): Error {
  return code === null ? new Error(detail) : new LedgerError(code, detail);
}

function failure(code: LedgerCode | null, detail: string): Failure {
  return { failed: true, code, detail };
}

function isLedgerCode(code: ErrorCode): code is LedgerCode {
  return code.startsWith("ledger_");
}

/** SQLite's own code of an error; null when it is none of SQLite's. */
export function codeOf(error: unknown): string | null {
  if (!(error instanceof Error) || !("code" in error)) return null;
  return typeof error.code === "string" && error.code.startsWith("SQLITE_") ? error.code : null;
}

/** Node.js was upgraded since, or the package's install script did not run. */
function lacksLibrary(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as { readonly code?: unknown };
  // The second one has no code: it comes from better-sqlite3's search for its library.
  return code === "ERR_DLOPEN_FAILED" || error.message.startsWith("Could not locate the bindings");
}

function hasHardlyAnyRoom(path: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(dirname(path));
    return bavail * bsize < HARDLY_ANY_ROOM_BYTES;
  } catch {
    return false;
  }
}
