/** All benchmarks, in the order in which they run. P1 to P12 are the goals. */
import type { Ground } from "./ground.js";
import { drainsOnPostgres, drainsOnSqlite } from "./kinds/drain.js";
import { httpOnPostgres, httpOnSqlite } from "./kinds/http.js";
import { growthOfPayload, growthOfTable, growthOfWorkers } from "./kinds/growth.js";
import { hoursOnPostgres, hoursOnSqlite } from "./kinds/hours.js";
import { idleCost } from "./kinds/idle.js";
import { startLatency } from "./kinds/latency.js";
import { memoryOverJobs } from "./kinds/memory.js";
import { againstRedis } from "./kinds/redis.js";
import { boundedAdmission, submitsOnPostgres, submitsOnSqlite } from "./kinds/submit.js";
import { tableSize } from "./kinds/table-size.js";
import { growthOfWaiters, manyWaiters } from "./kinds/waiters.js";
import type { Row } from "./row.js";

export interface Benchmark {
  readonly name: string;
  /** In half a line. */
  readonly about: string;
  /** Takes an hour: run only where its name is given. */
  readonly onlyByName?: boolean;
  /** @throws Missing what it can't do without. */
  run(ground: Ground): Promise<Row[]>;
}

export const BENCHMARKS: readonly Benchmark[] = [
  { name: "P1", about: "HTTP submits on SQLite", run: httpOnSqlite },
  { name: "P2", about: "HTTP submits on PostgreSQL", run: httpOnPostgres },
  { name: "P3", about: "submits on PostgreSQL", run: submitsOnPostgres },
  { name: "P4", about: "drain on PostgreSQL", run: drainsOnPostgres },
  { name: "P5", about: "submits on SQLite", run: submitsOnSqlite },
  { name: "P6", about: "drain on SQLite", run: drainsOnSqlite },
  { name: "P7", about: "from submit to handler start", run: startLatency },
  { name: "P8", about: "10,000 requests in /wait", run: manyWaiters },
  { name: "P9", about: "a table full of ended jobs", run: tableSize },
  { name: "P10", about: "the cost of being idle", run: idleCost },
  { name: "P11", about: "memory over many jobs", run: memoryOverJobs },
  { name: "P12", about: "exactly bounded admission", run: boundedAdmission },
  { name: "redis", about: "BullMQ on Redis", run: againstRedis },
  { name: "growth-table", about: "cost of a job by ended jobs", run: growthOfTable },
  { name: "growth-workers", about: "drain by 1 to 8 processes", run: growthOfWorkers },
  { name: "growth-payload", about: "cost of a job by its input", run: growthOfPayload },
  { name: "growth-waiters", about: "waits by their number", run: growthOfWaiters },
  { name: "growth-hours", about: "an hour on PostgreSQL", run: hoursOnPostgres, onlyByName: true },
  {
    name: "growth-hours-sqlite",
    about: "an hour on SQLite",
    run: hoursOnSqlite,
    onlyByName: true,
  },
];
