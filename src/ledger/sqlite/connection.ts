/**
 * Opens the database file as a ledger: settings of the connection, schema, statements. Safe for any
 * number of processes at once, and takes no lock where nothing is to be changed.
 */
import Database from "better-sqlite3";
import { LedgerError } from "../../job/errors.js";
import { migrate, readMigrations } from "./migrate.js";
import { prepareStatements, type Statements } from "./statements.js";
import { Transaction } from "./transaction.js";

/** Longer than any transaction that this ledger makes; then the caller learns that something is wrong. */
export const BUSY_TIMEOUT_MS = 10_000;
/** Turning on the write-ahead log does not wait for a lock; so it is tried this often, this far apart. */
const WAL_ATTEMPTS = 100;
const WAL_PAUSE_MS = 50;
/** Negative: KiB, not pages. SQLite's own choice; four times as much made no difference (CPU, 20,000 jobs). */
const CACHE_KIB = -16_000;
/** 4 MiB. SQLite's own choice; four and ten times as much made no difference, and the log stays small. */
const CHECKPOINT_PAGES = 1_000;
/** What the log's file is cut to when nothing needs it any more. */
const LARGEST_IDLE_WAL_BYTES = 64 * 1024 * 1024;

export interface Connection {
  readonly db: Database.Database;
  readonly run: Statements;
}

export type OpenDatabase = (path: string) => Database.Database;

export function openDatabase(path: string): Database.Database {
  return new Database(path, { timeout: BUSY_TIMEOUT_MS });
}

/** @throws LedgerError, or SQLite's own error, which failures.ts explains. */
export function connect(path: string, nowMs: number, open: OpenDatabase): Connection {
  const db = open(path);
  try {
    turnOnWal(db, path);
    db.pragma("synchronous = FULL");
    db.pragma(`cache_size = ${String(CACHE_KIB)}`);
    db.pragma(`wal_autocheckpoint = ${String(CHECKPOINT_PAGES)}`);
    db.pragma(`journal_size_limit = ${String(LARGEST_IDLE_WAL_BYTES)}`);
    migrate(db, path, readMigrations(), nowMs);
    const run = prepareStatements(db);
    correctCounts(db, run);
    return { db, run };
  } catch (error) {
    db.close();
    throw isMismatch(error) ? foreignSchema(path, error) : error;
  }
}

function turnOnWal(db: Database.Database, path: string): void {
  for (let attempt = 1; ; attempt += 1) {
    try {
      if (db.pragma("journal_mode = WAL", { simple: true }) === "wal") return;
      throw new LedgerError(
        "ledger_unavailable",
        `the ledger ${path} can't be opened: its file system can't hold a write-ahead log; name a file on a local disk`,
      );
    } catch (error) {
      if (attempt === WAL_ATTEMPTS || !hasCode(error, "SQLITE_BUSY")) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, WAL_PAUSE_MS);
    }
  }
}

/** Someone may have written past the ledger while nobody had it open: counts what is live anew. */
function correctCounts(db: Database.Database, run: Statements): void {
  const differs = db.transaction(() => {
    const tx = new Transaction(run);
    tx.recount();
    return tx.changed;
  });
  if (!differs.deferred()) return;
  db.transaction(() => {
    const tx = new Transaction(run);
    tx.recount();
    tx.finish();
  }).immediate();
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}

/** What stands in the way of our tables or statements is someone else's. */
function isMismatch(error: unknown): boolean {
  return hasCode(error, "SQLITE_ERROR");
}

function foreignSchema(path: string, cause: unknown): LedgerError {
  return new LedgerError(
    "ledger_unreadable",
    `the ledger ${path} has tables of something else (${String(cause)}): name another file`,
    { cause },
  );
}
