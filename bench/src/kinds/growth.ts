/**
 * What a job costs as things grow: rows in the table, worker processes, bytes of input. Each row is a
 * step against the first of its kind, without a goal; waiters are `growth-waiters`.
 */
import type { Actor } from "../acting.js";
import type { Ground } from "../ground.js";
import { nowMs, until } from "../measure.js";
import { figure, inTurn, versus, type Row } from "../row.js";
import { opened } from "./table-size.js";

const STORES = ["PostgreSQL", "SQLite FULL"] as const;
type Store = (typeof STORES)[number];

interface Growth {
  readonly what: string;
  readonly unit: string;
  readonly store: Store;
  readonly steps: readonly number[];
  /** Of what `steps` counts. */
  readonly of: string;
  /** One round of a step. */
  readonly run: (step: number) => Promise<number>;
}

/** @returns a row for the first step, and one for each other against it. */
async function grow({ effort }: Ground, growth: Growth): Promise<Row[]> {
  const { unit, store, steps, run } = growth;
  const what = `${growth.what} (${store})`;
  const taken = await inTurn(
    effort.rounds,
    steps.map((step) => () => run(step)),
  );
  const series = steps.map((x, index) => ({
    name: `${String(x)} ${growth.of}`,
    rounds: taken[index] ?? [],
    at: { line: store, x },
  }));
  const [first, ...others] = series;
  if (first === undefined) return [];
  return [
    figure({ what, unit, series: first }),
    ...others.map((each) => versus({ what, unit }, each, first, undefined)),
  ];
}

/** Life of a job (submit, claim, end) in tables with more and more ended ones. */
export async function growthOfTable(ground: Ground): Promise<Row[]> {
  const { tableSizes, drainJobs } = ground.effort;
  const rows: Row[] = [];
  for (const store of STORES) {
    const actors = new Map<number, Actor>();
    for (const size of tableSizes) actors.set(size, await opened(ground, store, size));
    const growth: Growth = {
      what: "submit, claim and end against ended jobs in the table",
      unit: "µs/job",
      store,
      steps: tableSizes,
      of: "rows",
      async run(size) {
        const actor = actors.get(size);
        if (actor === undefined) throw new Error(`no table of ${String(size)} rows is open`);
        const submit = await actor.call("submitCount", drainJobs);
        return 1e6 / submit + 1e6 / (await actor.call("drain", drainJobs));
      },
    };
    rows.push(...(await grow(ground, growth)));
  }
  return rows;
}

/** One store, drained by 1, 2, 4 and 8 processes at once. */
export async function growthOfWorkers(ground: Ground): Promise<Row[]> {
  const rows: Row[] = [];
  for (const store of STORES)
    rows.push(
      ...(await grow(ground, {
        what: `drain ${String(ground.effort.drainJobs)} by several worker processes`,
        unit: "jobs/s",
        store,
        steps: [1, 2, 4, 8],
        of: "of them",
        run: (processes) => drainTogether(ground, store, processes),
      })),
    );
  return rows;
}

async function drainTogether(ground: Ground, store: Store, processes: number): Promise<number> {
  const place = store === "PostgreSQL" ? await ground.database() : ground.sqlite();
  const producer = await ground.actor("jobtable", place);
  const workers: Actor[] = [];
  for (let number = 0; number < processes; number += 1)
    workers.push(await ground.actor("jobtable", place));
  const jobs = ground.effort.drainJobs;
  await producer.call("fill", jobs);
  // The first look opens the store, which is not measured.
  for (const worker of workers) await worker.call("recorded");
  const began = nowMs();
  await Promise.all(workers.map((worker) => worker.call("work", false)));
  await until("the end of all jobs", async () => (await producer.call("unfinished")) === 0);
  const tookMs = nowMs() - began;
  const runs = await Promise.all(workers.map((worker) => worker.call("runs")));
  const total = runs.reduce((sum, count) => sum + count, 0);
  if (total !== jobs) throw new Error(`${String(total)} runs of ${String(jobs)} jobs`);
  for (const actor of [...workers, producer]) await actor.stop();
  return (jobs / tookMs) * 1_000;
}

/** Life of a job with a larger and larger input, one process. */
export async function growthOfPayload(ground: Ground): Promise<Row[]> {
  const rows: Row[] = [];
  for (const store of STORES) {
    const place = store === "PostgreSQL" ? await ground.database() : ground.sqlite();
    const actor = await ground.actor("jobtable", place);
    rows.push(
      ...(await grow(ground, {
        what: "submit, claim and end with a larger input",
        unit: "µs/job",
        store,
        steps: ground.effort.payloadBytes,
        of: "B",
        async run(bytes) {
          await actor.call("wipe");
          return await actor.call("lifeWith", bytes, ground.effort.payloadTotal);
        },
      })),
    );
  }
  return rows;
}
