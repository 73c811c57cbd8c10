/** All benchmarks, in the order in which they run. P1 to P12 are the goals. */
import type { Ground } from "./ground.js";
import { drainsOnPostgres, drainsOnSqlite } from "./kinds/drain.js";
import { boundedAdmission, submitsOnPostgres, submitsOnSqlite } from "./kinds/submit.js";
import type { Row } from "./row.js";

export interface Benchmark {
  readonly name: string;
  /** In half a line. */
  readonly about: string;
  /** @throws Missing what it can't do without. */
  run(ground: Ground): Promise<Row[]>;
}

export const BENCHMARKS: readonly Benchmark[] = [
  { name: "P3", about: "submits on PostgreSQL", run: submitsOnPostgres },
  { name: "P4", about: "drain on PostgreSQL", run: drainsOnPostgres },
  { name: "P5", about: "submits on SQLite", run: submitsOnSqlite },
  { name: "P6", about: "drain on SQLite", run: drainsOnSqlite },
  { name: "P12", about: "exactly bounded admission", run: boundedAdmission },
];
