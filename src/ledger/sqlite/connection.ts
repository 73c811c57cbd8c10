/**
 * Opens the database file as a ledger: settings of the connection, schema, statements. Safe for any
 * number of processes at once, and takes no lock where nothing is to be changed.
 */
import Database from "better-sqlite3";
import { LedgerError } from "../../job/errors.js";
import type { Clock } from "../../runtime/clock.js";
import { codeOf } from "./failures.js";
import { missingLedger, refuseOlder } from "../sql/migrations.js";
import { applied, ledgerAt, migrate, migrations } from "./migrate.js";
import { prepareStatements, type Statements } from "./statements.js";
import { Transaction } from "./transaction.js";

/**
 * Longer than any transaction that this ledger makes; then the caller learns that something is wrong.
 * Opening, which takes several locks, takes no longer than this for all of them.
 */
export const BUSY_TIMEOUT_MS = 10_000;
/** Turning on the write-ahead log may be refused without waiting for the lock; then it is tried again. */
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
  return new Database(path);
}

export interface ConnectOptions {
  readonly path: string;
  /** The ledger's time, for what opening records. */
  readonly nowMs: number;
  readonly clock: Clock;
  readonly open: OpenDatabase;
  readonly busyTimeoutMs: number;
  /** Whether a database that is no ledger is made one, and an older one brought up. */
  readonly create: boolean;
}

/** @throws LedgerError, or SQLite's own error, which failures.ts explains. */
export function connect(options: ConnectOptions): Connection {
  const { path, nowMs, clock, open, busyTimeoutMs } = options;
  const deadlineMs = clock.monotonicMs() + busyTimeoutMs;
  const db = openFile(path, open);
  const waitUntilDeadline = (): number => {
    const leftMs = Math.max(0, Math.ceil(deadlineMs - clock.monotonicMs()));
    setBusyTimeout(db, leftMs);
    return leftMs;
  };
  try {
    waitUntilDeadline();
    if (!options.create) {
      const seen = applied(db);
      if (seen === null) throw missingLedger(`ledger in ${path}`);
      refuseOlder(migrations(), seen, ledgerAt(path));
    }
    turnOnWal(db, path, waitUntilDeadline);
    db.pragma("synchronous = FULL");
    // On macOS fsync leaves the data in the drive's own cache; only these make it reach the disk.
    db.pragma("fullfsync = ON");
    db.pragma("checkpoint_fullfsync = ON");
    // Steps go with their runs, and runs with their plans.
    db.pragma("foreign_keys = ON");
    db.pragma(`cache_size = ${String(CACHE_KIB)}`);
    db.pragma(`wal_autocheckpoint = ${String(CHECKPOINT_PAGES)}`);
    db.pragma(`journal_size_limit = ${String(LARGEST_IDLE_WAL_BYTES)}`);
    waitUntilDeadline();
    migrate(db, path, migrations(), nowMs);
    const run = prepareStatements(db);
    waitUntilDeadline();
    correctCounts(db, run);
    setBusyTimeout(db, busyTimeoutMs);
    return { db, run };
  } catch (error) {
    db.close();
    throw isMismatch(error) ? foreignSchema(path, error) : error;
  }
}

function openFile(path: string, open: OpenDatabase): Database.Database {
  try {
    return open(path);
  } catch (cause) {
    // What the driver finds before SQLite is asked: the folder is gone.
    if (!(cause instanceof TypeError)) throw cause;
    throw new LedgerError(
      "ledger_unavailable",
      `the ledger ${path} can't be opened (${cause.message}): check that its folder is there`,
      { cause },
    );
  }
}

function setBusyTimeout(db: Database.Database, ms: number): void {
  db.pragma(`busy_timeout = ${String(ms)}`);
}

/** @param waitUntilDeadline lets the next statement wait for what is left, and answers how long that is. */
function turnOnWal(db: Database.Database, path: string, waitUntilDeadline: () => number): void {
  for (;;) {
    const leftMs = waitUntilDeadline();
    try {
      if (db.pragma("journal_mode = WAL", { simple: true }) === "wal") return;
    } catch (error) {
      if (leftMs === 0 || !isLocked(error)) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, WAL_PAUSE_MS);
      continue;
    }
    throw new LedgerError(
      "ledger_unavailable",
      `the ledger ${path} can't be opened: its file system can't hold a write-ahead log; name a file on a local disk`,
    );
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

function isLocked(error: unknown): boolean {
  return /^SQLITE_(BUSY|LOCKED)/.test(codeOf(error) ?? "");
}

/** What stands in the way of our tables or statements is someone else's. */
function isMismatch(error: unknown): boolean {
  return codeOf(error) === "SQLITE_ERROR";
}

function foreignSchema(path: string, cause: unknown): LedgerError {
  return new LedgerError(
    "ledger_unreadable",
    `the ledger ${path} has tables of something else (${String(cause)}): name another file`,
    { cause },
  );
}
