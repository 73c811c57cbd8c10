/** A ledger for the books, as it was built: its threads can't be started from TypeScript. */
import { pathToFileURL } from "node:url";
import { resolve } from "node:path";
import type * as compose from "../../../src/compose.js";
import type { Ledger } from "../../../src/ledger/ledger.js";
import { silentLogger } from "../../../src/runtime/logger.js";

const COMPOSE = resolve(import.meta.dirname, "../../../dist/compose.js");

export async function openBuiltLedger(store: string): Promise<Ledger> {
  const { openLedger } = (await import(pathToFileURL(COMPOSE).href)) as typeof compose;
  return openLedger(store, { logger: silentLogger });
}
