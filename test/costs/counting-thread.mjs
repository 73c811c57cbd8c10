// The database thread of dist/, which counts: every run of every statement by its name, commits by
// how safely they are made, and the rows of async_jobs that were visited. The counts lie in shared
// memory, in the order of the names that it is given, and are there before an answer is.
import Database from "better-sqlite3";
import { workerData } from "node:worker_threads";

const { counters, names } = workerData;
const dist = (file) => import(new URL(`../../dist/ledger/sqlite/${file}`, import.meta.url).href);
const { SQL } = await dist("statements.js");
const nameOf = new Map(Object.entries(SQL).map(([name, sql]) => [sql, name]));
const placeOf = new Map(names.map((name, place) => [name, place]));
const count = (name) => Atomics.add(counters, placeOf.get(name), 1);

let synchronous = "FULL";
let writes = false;

/** What it reads of the jobs goes past `visited`, row for row, whatever way it finds them. */
function watched(sql) {
  const reads = /\b((?:FROM|UPDATE) async_jobs\b(?: INDEXED BY \w+)?(?: SET\b.*?)?\s+WHERE)\b/gs;
  return sql.replace(reads, "$1 visited(rowid) AND");
}

const { prepare, pragma } = Database.prototype;

Database.prototype.prepare = function (sql) {
  const name = nameOf.get(sql);
  if (name === undefined) return prepare.call(this, sql);
  if (!this.visits) {
    this.visits = true;
    this.function("visited", (_rowid) => {
      count("rows");
      return 1;
    });
  }
  const statement = prepare.call(this, watched(sql));
  for (const way of ["run", "get", "all", "iterate"]) {
    const go = statement[way];
    statement[way] = function (...values) {
      count(name);
      if (name === "begin" || name === "beginWrite") writes = name === "beginWrite";
      if (name === "commit" && writes) count(synchronous);
      return go.apply(this, values);
    };
  }
  return statement;
};

Database.prototype.pragma = function (source, options) {
  const [, level] = /^synchronous = (\w+)$/.exec(source) ?? [];
  if (level !== undefined) synchronous = level;
  return pragma.call(this, source, options);
};

await dist("ledger-thread.js");
