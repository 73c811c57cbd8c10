/** The memory of one server with its worker while a great many jobs go through it: P11. */
import type { Ground } from "../ground.js";
import { metric, serveProduct } from "../http/served.js";
import { load, needWrk } from "../http/wrk.js";
import { needProc, residentBytes } from "../linux.js";
import { median, until } from "../measure.js";
import { figure, type Row } from "../row.js";

const MIB = 2 ** 20;
/** Looks at the memory; each when what was submitted since the last has ended. */
const SLICE_SECONDS = 2;
const LEAST_LOOKS = 4;

export async function memoryOverJobs(ground: Ground): Promise<Row[]> {
  needProc();
  needWrk();
  const jobs = ground.effort.memoryJobs;
  const server = ground.keep(await serveProduct(ground.sqlite(), []));
  const unfinished = async (): Promise<number> =>
    (await metric(server, "jobtable_jobs_queued")) +
    (await metric(server, "jobtable_jobs_running"));
  const succeeded = (): Promise<number> =>
    metric(server, 'jobtable_jobs_total{task="noop",status="succeeded"}');
  const looks: number[] = [];
  let answered = 0;
  while (answered < jobs || looks.length < LEAST_LOOKS) {
    answered += (await load(server.url, SLICE_SECONDS)).requests;
    await until("the end of all jobs", async () => (await unfinished()) === 0, { everyMs: 100 });
    looks.push(residentBytes(server.pid) / MIB);
  }
  const ended = await succeeded();
  if (ended < answered)
    throw new Error(`${String(answered)} jobs were accepted, ${String(ended)} succeeded`);
  const quarter = Math.floor(looks.length / 4);
  const early = median(looks.slice(quarter, quarter * 2));
  const late = median(looks.slice(-quarter));
  const what = `memory over ${String(answered)} jobs through one server (SQLite FULL)`;
  return [
    figure({
      what: `${what}: its last quarter against its second`,
      unit: "times",
      series: { name: "jobtable serve", rounds: [late / early] },
      target: { atMost: 1.1 },
    }),
    figure({
      what: `${what}: all looks`,
      unit: "MiB",
      series: { name: "jobtable serve", rounds: looks },
    }),
  ];
}
