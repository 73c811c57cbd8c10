/**
 * What a fault of PostgreSQL means. The server's own faults become a `LedgerError` that says what to
 * do; a fault of one call (a constraint, a value out of range) stays what it is. What has no SQLSTATE
 * comes from the connection: refused, reset, silent for too long.
 */
import { JobtableError, LedgerError } from "../../job/errors.js";

type LedgerCode = LedgerError["code"] & `ledger_${string}`;

interface Meaning {
  readonly code: LedgerCode;
  readonly what: string;
}

const UNAVAILABLE = "ledger_unavailable";
/** Only someone who changes a right, a password or a name can help: a start need not wait for it. */
const REFUSED = "ledger_refused";

/** By SQLSTATE; a class (two characters) stands for all of its codes that are not named. */
const MEANINGS: Readonly<Record<string, Meaning>> = {
  "08": { code: UNAVAILABLE, what: "the connection broke: try again" },
  "25006": { code: UNAVAILABLE, what: "it only allows reading: connect to the primary" },
  "28": { code: REFUSED, what: "it refused the login: check user and password" },
  "3D": { code: REFUSED, what: "the database does not exist: create it" },
  "3F": { code: "ledger_unreadable", what: "the schema is gone: open the ledger anew" },
  "40": { code: UNAVAILABLE, what: "the statement lost against others too often: try again" },
  "42501": { code: REFUSED, what: "access was denied: grant the user what is missing" },
  "42P01": { code: "ledger_unreadable", what: "a table is gone: open the ledger anew" },
  "42703": {
    code: "ledger_unreadable",
    what: "a column is gone: something else has changed the tables",
  },
  "53": { code: UNAVAILABLE, what: "it has no resources left: try again, or give it more" },
  "53100": { code: "ledger_full", what: "its disk is full: make room" },
  "55P03": { code: UNAVAILABLE, what: "a lock was held for too long: try again" },
  "57": { code: UNAVAILABLE, what: "it stopped the statement: try again" },
  "57P03": { code: UNAVAILABLE, what: "it is starting or stopping: try again" },
  "58": { code: UNAVAILABLE, what: "its system failed: check its log" },
  XX: { code: "ledger_unreadable", what: "it is damaged: check its log" },
};

/** Rolled back for certain, by a race with another transaction: serialization failure, deadlock. */
const LOST_RACES: ReadonlySet<string> = new Set(["40001", "40P01"]);
/** The server does not have the statement that we prepared, or has another one under its name: a proxy changed servers. Nothing was run. */
const FOREIGN_STATEMENTS: ReadonlySet<string> = new Set(["26000", "42P05"]);
/** A proxy that does not know the settings which a session begins with. */
const REFUSED_SETTINGS: ReadonlySet<string> = new Set(["08P01", "0A000"]);
const USED_VALUE = "23505";

export function isLostRace(error: unknown): boolean {
  return LOST_RACES.has(sqlState(error) ?? "");
}

export function isForeignStatement(error: unknown): boolean {
  return FOREIGN_STATEMENTS.has(sqlState(error) ?? "");
}

/** It gave up waiting for a lock, as it was told to. */
export function isLockTimeout(error: unknown): boolean {
  return sqlState(error) === "55P03";
}

/** What needs a transaction was sent outside of one. */
export function isNoTransaction(error: unknown): boolean {
  return sqlState(error) === "25P01";
}

/** Something failed in this transaction before; nothing is run in it any more. */
export function isAborted(error: unknown): boolean {
  return sqlState(error) === "25P02";
}

/** There is no such table, or no such schema. */
export function isMissingTable(error: unknown): boolean {
  return ["42P01", "3F000"].includes(sqlState(error) ?? "");
}

/** The driver's words for a connection that broke while it lay in the pool: the statement was not sent. */
const STALE = "is not queryable";

export function isStaleConnection(error: unknown): boolean {
  return error instanceof Error && error.message.includes(STALE);
}

export function isRefusedSetting(error: unknown): boolean {
  return REFUSED_SETTINGS.has(sqlState(error) ?? "");
}

/** Whether the connection can't be used again. One that only allows reading leads to a server that is no primary any more. */
export function breaksConnection(error: unknown): boolean {
  const state = sqlState(error);
  return state === null || /^(08|25006|57P|58|XX|26|42P05)/.test(state);
}

/** Which unique index refused a value, and what it says about it; null for other faults. */
export function usedValue(
  error: unknown,
): { readonly index: string; readonly detail: string } | null {
  if (sqlState(error) !== USED_VALUE || !(error instanceof Error)) return null;
  const text = (value: unknown): string => (typeof value === "string" ? value : "");
  return {
    index: text("constraint" in error ? error.constraint : ""),
    detail: text("detail" in error ? error.detail : ""),
  };
}

/** @param label the server, as messages name it. */
export function explain(error: unknown, label: string): Error {
  if (error instanceof JobtableError) return error;
  const detail = oneLine(error);
  const state = sqlState(error);
  if (state === null)
    return new LedgerError(
      UNAVAILABLE,
      `the ledger ${label}: it can't be reached: check that the server runs (${detail})`,
      { cause: error },
    );
  const meaning = MEANINGS[state] ?? MEANINGS[state.slice(0, 2)];
  if (meaning === undefined) return new Error(`${detail} (${state})`, { cause: error });
  return new LedgerError(
    meaning.code,
    `the ledger ${label}: ${meaning.what} (${state}: ${detail})`,
    { cause: error },
  );
}

/** Five digits and capitals (https://www.postgresql.org/docs/current/errcodes-appendix.html); Node's own codes look different. */
function sqlState(error: unknown): string | null {
  if (!(error instanceof Error) || !("code" in error)) return null;
  const { code } = error;
  return typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) && !/^E[A-Z]{4}$/.test(code)
    ? code
    : null;
}

function oneLine(error: unknown): string {
  if (error instanceof AggregateError && error.message === "")
    return error.errors.map((each) => oneLine(each)).join(", ");
  const text = error instanceof Error ? error.message : String(error);
  return text.replaceAll(/\s*\n\s*/g, " ");
}
