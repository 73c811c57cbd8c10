/** Claim, run and end jobs that do nothing, in one worker process, until every end is on record: P4 and P6. */
import type { PeerName } from "../acting.js";
import type { Ground } from "../ground.js";
import type { Place } from "../peers/peer.js";
import { contest, type Row, type Runner } from "../row.js";

/** A round empties and fills the store first, which is not measured. */
export async function draining(
  ground: Ground,
  name: string,
  peer: PeerName,
  place: Place,
): Promise<Runner> {
  const actor = await ground.actor(peer, place);
  const jobs = ground.effort.drainJobs;
  return {
    name,
    async run() {
      await actor.call("wipe");
      await actor.call("fill", jobs);
      return await actor.call("drain", jobs);
    },
  };
}

export async function drainsOnPostgres(ground: Ground): Promise<Row[]> {
  const product = await draining(ground, "jobtable", "jobtable", await ground.database());
  const graphile = await draining(
    ground,
    "graphile-worker at its best (deletes)",
    "graphile-worker",
    await ground.database(),
  );
  const boss = await draining(ground, "pg-boss, batches", "pg-boss", await ground.database());
  return await contest(
    {
      what: `drain ${String(ground.effort.drainJobs)}, one process, results kept (PostgreSQL)`,
      unit: "jobs/s",
      product,
      peers: [{ ...graphile, target: { atLeast: 1 } }, boss],
    },
    ground.effort.rounds,
  );
}

export async function drainsOnSqlite(ground: Ground): Promise<Row[]> {
  const product = await draining(ground, "jobtable", "jobtable", ground.sqlite());
  const plainjob = await draining(ground, "plainjob, NORMAL", "plainjob", ground.sqlite());
  return await contest(
    {
      what: `drain ${String(ground.effort.drainJobs)}, one process, results kept (SQLite FULL)`,
      unit: "jobs/s",
      product,
      peers: [{ ...plainjob, target: { atLeast: 4 } }],
    },
    ground.effort.rounds,
  );
}
