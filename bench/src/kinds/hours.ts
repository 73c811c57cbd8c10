/**
 * What hours of a steady load leave behind, with a store at its own defaults (autovacuum on) and
 * retention at work all the time. One process submits at an even pace and waits for the end of each
 * job, another one runs them. Both are asked again and again: how long things took, what the store
 * holds, what the processes hold. The last quarter of these samples is held against the second.
 * Each job must have run once and ended well; a run in which one did not fails and has no figure.
 */
import { statSync } from "node:fs";
import { join } from "node:path";
import type { Actor } from "../acting.js";
import type { Ground } from "../ground.js";
import { cpuSeconds, needProc, residentBytes } from "../linux.js";
import { median, percentile, until } from "../measure.js";
import type { Place } from "../peers/peer.js";
import { figure, type Row } from "../row.js";
import type { Postgres } from "../servers/postgres.js";

const MIB = 2 ** 20;
/** Ended jobs are kept for this share of the run: retention is at work before the second quarter. */
const KEPT = 1 / 12;
const QUARTERS = 4;
const TARGET = { atMost: 1.2 };

interface Metric {
  readonly name: string;
  readonly unit: string;
  /** Drawn in the plot of its unit. */
  readonly drawn?: true;
  /** Its last quarter is held against its second. */
  readonly judged: boolean;
}

const TIMES = ["submit", "start", "end"] as const;
const SHARES = { p50: 0.5, p99: 0.99 } as const;

const OF_TIMES: readonly Metric[] = TIMES.flatMap((what) =>
  Object.keys(SHARES).map((share): Metric => {
    const metric = { name: `${what} ${share}`, unit: "ms", judged: true };
    return what === "end" ? metric : { ...metric, drawn: true };
  }),
);
const OF_PROCESSES: readonly Metric[] = [
  { name: "memory of who submits", unit: "MiB", drawn: true, judged: true },
  { name: "memory of who runs", unit: "MiB", drawn: true, judged: true },
  { name: "CPU of both", unit: "µs/job", judged: true },
];
const OF_POSTGRES: readonly Metric[] = [
  { name: "tables", unit: "MiB", drawn: true, judged: true },
  { name: "indexes", unit: "MiB", drawn: true, judged: true },
  { name: "dead rows", unit: "rows", judged: false },
  { name: "rounds of autovacuum", unit: "rounds", judged: false },
  { name: "log (WAL)", unit: "B/job", judged: true },
];
const OF_SQLITE: readonly Metric[] = [
  { name: "database", unit: "MiB", drawn: true, judged: true },
  { name: "its log (WAL)", unit: "MiB", drawn: true, judged: true },
];

type Sample = ReadonlyMap<string, number>;
/** What the store holds; counts since the start of all time are `since` the sample before. */
type Look = () => Promise<{ readonly now: Sample; readonly sinceStart: Sample }>;

export async function hoursOnPostgres(ground: Ground): Promise<Row[]> {
  needProc();
  const place = await ground.database();
  const look = lookAtPostgres(await ground.postgres(), place.url);
  return hours(ground, { store: "PostgreSQL", place, look, metrics: OF_POSTGRES });
}

export async function hoursOnSqlite(ground: Ground): Promise<Row[]> {
  needProc();
  const place = ground.sqlite();
  const look = lookAtSqlite(place.folder ?? "");
  return hours(ground, { store: "SQLite FULL", place, look, metrics: OF_SQLITE });
}

interface Course {
  readonly store: string;
  readonly place: Place;
  readonly look: Look;
  readonly metrics: readonly Metric[];
}

async function hours(ground: Ground, { store, place, look, metrics }: Course): Promise<Row[]> {
  const { minutes, perSecond, sampleSeconds } = ground.effort.hours;
  const count = Math.max(QUARTERS, Math.round((minutes * 60) / sampleSeconds));
  const jobs = perSecond * sampleSeconds;
  const kept = Math.round(count * jobs * KEPT);
  const producer = await ground.actor("jobtable", { ...place, kept });
  const worker = await ground.actor("jobtable", { ...place, kept });
  const starts = new Starts(worker);
  await worker.call("work", true);
  // Connections open and code is compiled before the first sample.
  await producer.call("steady", 0, perSecond, perSecond);
  const samples: Sample[] = [];
  let [before, cpuBefore] = [(await look()).sinceStart, cpuOf(producer, worker)];
  for (let done = 0; done < count; done += 1) {
    const first = perSecond + done * jobs;
    const lives = await producer.call("steady", first, jobs, perSecond);
    const { now, sinceStart } = await look();
    const cpu = cpuOf(producer, worker);
    samples.push(
      new Map([
        ...timesOf(lives, await starts.from(first, jobs)),
        ...now,
        ...[...sinceStart].map(([name, value]): [string, number] => [
          name,
          (value - (before.get(name) ?? 0)) / (name === "log (WAL)" ? jobs : 1),
        ]),
        ["memory of who submits", residentBytes(producer.pid) / MIB],
        ["memory of who runs", residentBytes(worker.pid) / MIB],
        ["CPU of both", ((cpu - cpuBefore) / jobs) * 1e6],
      ]),
    );
    [before, cpuBefore] = [sinceStart, cpu];
    process.stderr.write(`${store}: ${String(done + 1)} of ${String(count)} samples\n`);
  }
  const total = perSecond + count * jobs;
  const runs = await worker.call("runs");
  if (runs !== total) throw new Error(`${String(runs)} runs of ${String(total)} jobs`);
  const what = `${String(minutes)} minutes of ${String(perSecond)} jobs/s (${store})`;
  return [
    figure({
      what: `${what}: jobs, each run once and none lost`,
      unit: "jobs",
      series: { name: "jobtable", rounds: [total] },
    }),
    ...[...OF_TIMES, ...metrics, ...OF_PROCESSES].flatMap((metric) =>
      rowsOf(what, metric, samples, sampleSeconds / 60),
    ),
  ];
}

function cpuOf(...actors: readonly Actor[]): number {
  return actors.reduce((sum, { pid }) => sum + cpuSeconds(pid), 0);
}

/** When each handler started, until it is asked for. */
class Starts {
  readonly #at = new Map<number, number>();

  /** @throws later, out of `from`, where a job starts twice. */
  constructor(worker: Actor) {
    worker.onRun(({ n, at }) => {
      this.#at.set(n, this.#at.has(n) ? Number.NaN : at);
    });
  }

  /** Messages of a process come in order, but those of two in none. */
  async from(first: number, count: number): Promise<number[]> {
    const wanted = Array.from({ length: count }, (_, index) => first + index);
    await until("the starts of all jobs", () => wanted.every((n) => this.#at.has(n)));
    return wanted.map((n) => {
      const at = this.#at.get(n) ?? Number.NaN;
      if (Number.isNaN(at)) throw new Error(`job ${String(n)} was run twice`);
      this.#at.delete(n);
      return at;
    });
  }
}

interface Lives {
  readonly called: readonly number[];
  readonly answered: readonly number[];
  readonly ended: readonly number[];
}

/** All from the call of the submit. */
function timesOf({ called, answered, ended }: Lives, started: readonly number[]) {
  const since = (ats: readonly number[]): number[] => ats.map((at, n) => at - (called[n] ?? 0));
  const times = { submit: since(answered), start: since(started), end: since(ended) };
  return TIMES.flatMap((what) =>
    Object.entries(SHARES).map(([share, part]): [string, number] => [
      `${what} ${share}`,
      percentile(times[what], part),
    ]),
  );
}

function lookAtPostgres(postgres: Postgres, url: string): Look {
  const text = `select sum(pg_table_size(relid)) as tables, sum(pg_indexes_size(relid)) as indexes,
      sum(n_dead_tup) as dead, sum(autovacuum_count) as vacuums,
      pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') as log
    from pg_stat_user_tables where schemaname = 'jobtable'`;
  return async () => {
    const [row = {}] = await postgres.query(url, text);
    return {
      now: new Map([
        ["tables", Number(row["tables"]) / MIB],
        ["indexes", Number(row["indexes"]) / MIB],
        ["dead rows", Number(row["dead"])],
      ]),
      sinceStart: new Map([
        ["rounds of autovacuum", Number(row["vacuums"])],
        ["log (WAL)", Number(row["log"])],
      ]),
    };
  };
}

function lookAtSqlite(folder: string): Look {
  const bytes = (file: string): number => statSync(join(folder, file)).size;
  return async () => ({
    now: new Map([
      ["database", bytes("jobs.db") / MIB],
      ["its log (WAL)", bytes("jobs.db-wal") / MIB],
    ]),
    sinceStart: new Map(),
  });
}

/** All samples, and how the last quarter compares with the second. */
function rowsOf(
  what: string,
  { name, unit, drawn, judged }: Metric,
  samples: readonly Sample[],
  every: number,
): Row[] {
  const rounds = samples.map((sample) => sample.get(name) ?? Number.NaN);
  const along = drawn === undefined ? {} : { along: { line: name, every } };
  const all = figure({
    what: `${what}: ${name}, all samples`,
    unit,
    series: { name: "jobtable", rounds, ...along },
  });
  if (!judged) return [all];
  const quarter = Math.floor(rounds.length / QUARTERS);
  const early = median(rounds.slice(quarter, quarter * 2));
  const late = median(rounds.slice(-quarter));
  return [
    all,
    figure({
      what: `${what}: ${name}, last quarter against second`,
      unit: "times",
      series: { name: "jobtable", rounds: [late / early] },
      target: TARGET,
    }),
  ];
}
