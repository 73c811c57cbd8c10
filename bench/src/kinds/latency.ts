/** From a submit to the first line of its handler, everything idle before: P7. */
import type { Actor, PeerName } from "../acting.js";
import type { Ground } from "../ground.js";
import { pause, percentile } from "../measure.js";
import type { Place } from "../peers/peer.js";
import { figure, inTurn, versus, type Row } from "../row.js";

/** Of the first submits, which open connections and compile code. */
const WARM = 5;
const PAUSE_MS = 20;
const LOST_MS = 20_000;

interface Latencies {
  readonly fromCall: readonly number[];
  readonly fromAnswer: readonly number[];
}

export async function startLatency(ground: Ground): Promise<Row[]> {
  return [...(await inOneProcess(ground)), ...(await toAnotherProcess(ground))];
}

async function inOneProcess(ground: Ground): Promise<Row[]> {
  const { rounds, latencyJobs } = ground.effort;
  const actor = await ground.actor("jobtable", ground.sqlite());
  const [taken = []] = await inTurn(rounds, [
    async () => (await actor.call("latencies", latencyJobs + WARM)).slice(WARM),
  ]);
  return ([0.5, 0.99] as const).map((share) =>
    figure({
      what: `submit called to handler start, one process, ${name(share)} (SQLite FULL)`,
      unit: "ms",
      series: { name: "jobtable", rounds: taken.map((values) => percentile(values, share)) },
      ...(share === 0.5 ? { target: { atMost: 0.5 } } : {}),
    }),
  );
}

/** What suits graphile-worker best for many jobs may not for one: it is there in both ways. */
const PEERS = [
  { peer: "graphile-worker", title: "graphile-worker", plain: false, isGoal: true },
  { peer: "graphile-worker", title: "graphile-worker, its defaults", plain: true, isGoal: true },
  { peer: "pg-boss", title: "pg-boss with NOTIFY", plain: false, isGoal: false },
] as const;

async function toAnotherProcess(ground: Ground): Promise<Row[]> {
  const pairs = [await pair(ground, "jobtable", await ground.database())];
  for (const { peer, plain } of PEERS)
    pairs.push(await pair(ground, peer, { ...(await ground.database()), plain }));
  const [mine = [], ...theirs] = await inTurn(ground.effort.rounds, pairs);
  const rows: Row[] = [];
  for (const since of ["fromAnswer", "fromCall"] as const)
    for (const share of [0.5, 0.99] as const)
      for (const [index, { title, isGoal }] of PEERS.entries()) {
        const figures = (all: readonly Latencies[]): number[] =>
          all.map((taken) => percentile(taken[since], share));
        const what = `submit ${since === "fromCall" ? "called" : "answered"} to handler start, another process, ${name(share)} (PostgreSQL)`;
        rows.push(
          versus(
            { what, unit: "ms" },
            { name: "jobtable", rounds: figures(mine) },
            { name: title, rounds: figures(theirs[index] ?? []) },
            isGoal && share === 0.5 ? { atMost: 1 } : undefined,
          ),
        );
      }
  return rows;
}

function name(share: number): string {
  return `p${String(Math.round(share * 100))}`;
}

/** @returns measures a round between two processes of a peer. */
async function pair(
  ground: Ground,
  peer: PeerName,
  place: Place,
): Promise<() => Promise<Latencies>> {
  const producer = await ground.actor(peer, place);
  const worker = await ground.actor(peer, place);
  await worker.call("work", true);
  return () => round(producer, worker, ground.effort.latencyJobs);
}

async function round(producer: Actor, worker: Actor, jobs: number): Promise<Latencies> {
  const fromCall: number[] = [];
  const fromAnswer: number[] = [];
  for (let n = 0; n < jobs + WARM; n += 1) {
    const start = startOf(worker, n);
    const { called, answered } = await producer.call("submitOne", n);
    const at = await start;
    if (n >= WARM) {
      fromCall.push(at - called);
      fromAnswer.push(at - answered);
    }
    await pause(PAUSE_MS);
  }
  return { fromCall, fromAnswer };
}

function startOf(worker: Actor, n: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => {
      reject(new Error(`job ${String(n)} did not start`));
    }, LOST_MS);
    worker.onRun((run) => {
      if (run.n !== n) return;
      clearTimeout(late);
      resolve(run.at);
    });
  });
}
