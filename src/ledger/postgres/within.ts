/**
 * Submitting on a client of the caller's, as part of its open transaction; ../within.ts says what that
 * means to everybody else. Nothing is prepared, set or rolled back on that client: when a statement is
 * refused, its transaction is the caller's to end, and nothing more is tried in it: the fault that is
 * told is the first one.
 *
 * The row of counts is locked before keys are looked for, so that no other submit can record one of
 * them in between: a try that the unique index refuses would end the caller's transaction.
 */
import { JobtableError } from "../../job/errors.js";
import type { TransactionClient, Within } from "../within.js";
import type { Address } from "./address.js";
import type { Changes } from "./changes.js";
import { explain, isAborted, isMissingTable, isNoTransaction } from "./failures.js";
import { inSchema } from "./migrate.js";
import type { Row } from "./rows.js";
import { statementsOf, type RunStatement } from "./session.js";
import { COUNTS } from "./statements.js";
import { submitOver } from "./submitting.js";

/** The mildest lock, which the submit takes anyway; outside of a transaction it is refused. */
const IN_TRANSACTION = `LOCK TABLE ${COUNTS} IN ROW SHARE MODE`;
const LOCK_COUNTS = `SELECT only_row FROM ${COUNTS} WHERE only_row = 1 FOR UPDATE`;

/** @param verb runs a submit as one of the ledger's calls. */
export function within(
  address: Address,
  changes: Changes,
  verb: <T>(body: () => Promise<T>) => Promise<T>,
): Within {
  const statements = statementsOf(address.schema);
  return (client) => {
    const ask = (text: string, values: readonly unknown[]): Promise<Row[]> =>
      askOn(client, address, text, values);
    const run: RunStatement = async (name, values) => {
      const statement = statements.get(name);
      if (statement === undefined) throw new Error(`there is no statement ${name}`);
      await ask(inSchema(IN_TRANSACTION, address.schema), []);
      if (name === "submitKeyed") await ask(inSchema(LOCK_COUNTS, address.schema), []);
      return ask(statement.text, values);
    };
    return {
      submit: (jobs, bound) =>
        verb(async () =>
          jobs.length === 0 ? [] : submitOver(run, jobs, bound, changes.tellingElsewhere(), 1),
        ),
    };
  };
}

async function askOn(
  client: TransactionClient,
  { schema, label }: Address,
  text: string,
  values: readonly unknown[],
): Promise<Row[]> {
  try {
    const { rows } = await client.query(text, [...values]);
    return rows.map((row) => Object.values(Object(row) as Record<string, string | null>));
  } catch (error) {
    if (isNoTransaction(error))
      throw new JobtableError(
        "invalid_config",
        "client: it is in no transaction: run BEGIN on it first, and COMMIT after the submit",
        { cause: error },
      );
    if (isAborted(error))
      throw new JobtableError(
        "invalid_config",
        "client: a statement in its transaction has failed before: ROLLBACK, mend what that one told, and begin anew",
        { cause: error },
      );
    if (isMissingTable(error))
      throw new JobtableError(
        "invalid_config",
        `client: it finds no ledger in schema ${schema}: connect it to the database of the store`,
        { cause: error },
      );
    throw explain(error, label);
  }
}
