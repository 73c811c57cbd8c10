/** Submitting within a transaction of the caller's own, where a ledger lives in the caller's database. */
import type { Ledger } from "./ledger.js";

/** The caller's own `pg` client, connected to the database of the ledger. */
export interface TransactionClient {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
}

/**
 * A submit that happens when the client's open transaction is committed, and not at all when it is
 * rolled back (to a savepoint before it, too). Nobody sees the jobs before; the wake-up goes out with
 * the commit. The answers hold from then on.
 *
 * Admission is exact for such jobs as for all, and that has a price: from the submit to the end of the
 * transaction this client holds the lock on the ledger's counts, which every other submit, claim and
 * end waits for, in all processes. So submit last, and commit at once; the others give up after ten
 * seconds. Transactions run at READ COMMITTED, PostgreSQL's default: at a stricter level the submit
 * fails (40001) whenever anything else has moved in the ledger since the transaction began.
 */
export type Within = (client: TransactionClient) => Pick<Ledger, "submit">;
