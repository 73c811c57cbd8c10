/** What one server and four workers cost while nothing happens, on PostgreSQL: P10. */
import type { Ground } from "../ground.js";
import { metric, serveProduct, workProduct } from "../http/served.js";
import { cpuSeconds, needProc } from "../linux.js";
import { pause, until } from "../measure.js";
import { figure, type Row } from "../row.js";

const WORKERS = 4;
/** Until what happens once at the start is over: a worker's stall guard loads its code after three seconds. */
const SETTLE_MS = 10_000;
/** As the server logs them: `NAME|LOG:  execute ...: select 1`. */
const STATEMENT = /^([\w-]+)\|LOG: {2}(?:statement|execute [^:]*): /gm;

export async function idleCost(ground: Ground): Promise<Row[]> {
  needProc();
  const postgres = await ground.postgres();
  const { url } = await ground.database();
  const placeOf = (name: string) => ({ url: `${url}?application_name=${name}` });
  const server = ground.keep(await serveProduct(placeOf("server"), ["--no-worker"]));
  const processes = [{ name: "server", pid: server.pid }];
  for (let number = 1; number <= WORKERS; number += 1) {
    const name = `worker-${String(number)}`;
    processes.push({ name, pid: ground.keep(workProduct(placeOf(name))).pid });
  }
  await runOne();
  await pause(SETTLE_MS);
  await postgres.query(url, "alter system set log_statement = 'all'");
  await postgres.query(url, "select pg_reload_conf()");
  const seconds = ground.effort.idleSeconds;
  const logged = postgres.log().length;
  const before = processes.map(({ pid }) => cpuSeconds(pid));
  await pause(seconds * 1_000);
  const cpu = processes.map(({ pid }, index) => cpuSeconds(pid) - (before[index] ?? 0));
  const counts = new Map(processes.map(({ name }) => [name, 0]));
  for (const [, name = ""] of postgres.log().slice(logged).matchAll(STATEMENT))
    if (counts.has(name)) counts.set(name, (counts.get(name) ?? 0) + 1);
  await postgres.query(url, "alter system reset log_statement");
  await postgres.query(url, "select pg_reload_conf()");
  if ([...counts.values()].some((count) => count === 0))
    throw new Error(`no statement was logged of one of ${JSON.stringify([...counts])}`);
  await runOne();
  const what = `idle for ${String(seconds)} s, one server and four workers (PostgreSQL)`;
  return [
    figure({
      what: `${what}: statements, the busiest of the five`,
      unit: "per second",
      series: { name: "jobtable", rounds: [Math.max(...counts.values()) / seconds] },
      target: { atMost: 2 },
    }),
    figure({
      what: `${what}: CPU, the busiest of the five`,
      unit: "% of a core",
      series: { name: "jobtable", rounds: [(Math.max(...cpu) / seconds) * 100] },
      target: { atMost: 1 },
    }),
  ];

  /** They are idle, not dead. */
  async function runOne(): Promise<void> {
    const submitted = await fetch(`${server.url}/jobs`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"n":1}',
    });
    if (submitted.status !== 202) throw new Error(`the server answered ${submitted.status}`);
    await until(
      "the end of a job",
      async () =>
        (await metric(server, "jobtable_jobs_queued")) +
          (await metric(server, "jobtable_jobs_running")) ===
        0,
      { everyMs: 50 },
    );
  }
}
