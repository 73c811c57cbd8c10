/**
 * The one place that picks a ledger. Each is loaded when its store is asked for: what is not used
 * need not be loaded, or installed.
 */
import { JobtableError } from "./job/errors.js";
import type { Ledger } from "./ledger/ledger.js";
import { systemClock, type Clock } from "./runtime/clock.js";
import type { Logger } from "./runtime/logger.js";

export interface LedgerPorts {
  readonly clock?: Clock;
  readonly logger: Logger;
}

/**
 * @param store `memory` or `sqlite:PATH`.
 * @throws JobtableError `invalid_config` for any other store; a `LedgerError` when it can't be opened.
 */
export async function openLedger(
  store: string,
  { clock = systemClock, logger }: LedgerPorts,
): Promise<Ledger> {
  if (store === "memory") {
    const { openMemoryLedger } = await import("./ledger/memory/memory-ledger.js");
    return openMemoryLedger({ clock });
  }
  const path = /^sqlite:(.+)$/s.exec(store)?.[1];
  if (path !== undefined) {
    const { openSqliteLedger } = await import("./ledger/sqlite/sqlite-ledger.js");
    return openSqliteLedger({ path, clock, logger });
  }
  throw new JobtableError(
    "invalid_config",
    `store: expected memory or sqlite:PATH, got ${withoutPassword(store)}`,
  );
}

/** A mistyped URL may carry a password, and messages are logged. */
function withoutPassword(store: string): string {
  return JSON.stringify(store.replace(/\/\/([^@/]*)@/, "//***@"));
}
