/** The statements of one schema, ready to run by name. */
import { createHash } from "node:crypto";
import type { Connections } from "./connections.js";
import { inSchema } from "./migrate.js";
import { PLAN_SQL } from "./plan-statements.js";
import type { Row } from "./rows.js";
import { SQL, type Statement } from "./statements.js";
import { SUBMITTING_SQL } from "./submitting-statements.js";
import { SWEEPING_SQL } from "./sweeping-statements.js";

const ALL_SQL = { ...SQL, ...SUBMITTING_SQL, ...SWEEPING_SQL, ...PLAN_SQL };

export type StatementName = keyof typeof ALL_SQL;

/** @throws LedgerError, or an Error when this call's values are at fault. */
export type RunStatement = (name: StatementName, values: readonly unknown[]) => Promise<Row[]>;

/**
 * Every statement as it is sent. What is prepared is named after its text: where a proxy lets others
 * share a connection, a name may be there already, and must not stand for another schema or version.
 */
export function statementsOf(schema: string): ReadonlyMap<StatementName, Statement> {
  const entries = Object.entries(ALL_SQL) as [StatementName, string][];
  return new Map(
    entries.map(([name, sql]) => {
      const text = inSchema(sql, schema);
      const hash = createHash("sha256").update(text).digest("hex").slice(0, 16);
      return [name, { name: `jobtable_${name}_${hash}`, text }];
    }),
  );
}

export function session(connections: Connections, schema: string): RunStatement {
  const statements = statementsOf(schema);
  return (name, values) => {
    const statement = statements.get(name);
    if (statement === undefined) throw new Error(`there is no statement ${name}`);
    return connections.run(statement, values);
  };
}
