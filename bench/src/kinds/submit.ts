/** Single submits, 64 in flight from one process: P3, P5 and P12. */
import type { Actor, PeerName } from "../acting.js";
import type { Ground } from "../ground.js";
import type { Place } from "../peers/peer.js";
import { contest, type Rival, type Row, type Runner, type Target } from "../row.js";

const WORK = "single submits, 64 in flight";

/** A round empties the store first, which is not measured. */
export async function submitting(
  ground: Ground,
  name: string,
  peer: PeerName,
  place: Place,
): Promise<Runner> {
  const actor = await ground.actor(peer, place);
  return {
    name,
    async run() {
      await actor.call("wipe");
      return await actor.call("submitFor", ground.effort.submitMs);
    },
  };
}

async function rival(
  ground: Ground,
  name: string,
  peer: PeerName,
  place: Place,
  target?: Target,
): Promise<Rival> {
  const runner = await submitting(ground, name, peer, place);
  return target === undefined ? runner : { ...runner, target };
}

export async function submitsOnPostgres(ground: Ground): Promise<Row[]> {
  return await contest(
    {
      what: `${WORK} (PostgreSQL)`,
      unit: "jobs/s",
      product: await submitting(ground, "jobtable", "jobtable", await ground.database()),
      peers: [
        await rival(ground, "pg-boss, 10 connections", "pg-boss", await ground.database(), {
          atLeast: 10,
        }),
        await rival(ground, "graphile-worker", "graphile-worker", await ground.database()),
      ],
    },
    ground.effort.rounds,
  );
}

export async function submitsOnSqlite(ground: Ground): Promise<Row[]> {
  return await contest(
    {
      what: `${WORK} (SQLite FULL)`,
      unit: "jobs/s",
      product: await submitting(ground, "jobtable", "jobtable", ground.sqlite()),
      peers: [await rival(ground, "plainjob, NORMAL", "plainjob", ground.sqlite(), { atLeast: 2 })],
    },
    ground.effort.rounds,
  );
}

/**
 * The bound is as many jobs as are submitted, or out of reach. The statement is the same, and counts
 * against the bound both times: this tells whether a queue that fills up slows it, not what counting costs.
 */
export async function boundedAdmission(ground: Ground): Promise<Row[]> {
  const rows: Row[] = [];
  for (const store of ["SQLite FULL", "PostgreSQL"] as const) {
    const place = async (): Promise<Place> =>
      store === "PostgreSQL" ? await ground.database() : ground.sqlite();
    const bound = ground.effort.drainJobs;
    const bounded = await ground.actor("jobtable", { ...(await place()), bound });
    const free = await ground.actor("jobtable", await place());
    const run = (actor: Actor) => async (): Promise<number> => {
      await actor.call("wipe");
      return await actor.call("submitCount", bound);
    };
    rows.push(
      ...(await contest(
        {
          what: `${WORK}, into a queue that fills up against one that does not, both counted (${store})`,
          unit: "jobs/s",
          product: {
            name: `async_max_queue = ${String(bound)}, all of it filled`,
            run: run(bounded),
          },
          peers: [{ name: "bound far away", run: run(free), target: { atLeast: 0.7 } }],
        },
        ground.effort.rounds,
      )),
    );
  }
  return rows;
}
