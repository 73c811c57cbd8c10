/** `POST /jobs` from 32 connections, answered 202 when the job is on record: P1 and P2. */
import type { PeerName } from "../acting.js";
import type { Ground } from "../ground.js";
import { load, needWrk } from "../http/wrk.js";
import { metric, serveFront, serveProduct, type Served } from "../http/served.js";
import type { Place } from "../peers/peer.js";
import { contest, type Rival, type Row, type Runner, type Target } from "../row.js";

const WORK = "HTTP submit, 202 after it is on record, 32 connections";

/** Servers stay for all rounds; one round is one load, after which all that was answered must be on record. */
function loading(
  ground: Ground,
  name: string,
  server: Served,
  recorded: () => Promise<number>,
): Runner {
  ground.keep(server);
  return {
    name,
    async run() {
      const before = await recorded();
      const { requests, perSecond } = await load(server.url, ground.effort.httpSeconds);
      const more = (await recorded()) - before;
      if (more < requests)
        throw new Error(`${name}: ${String(requests)} answers, ${String(more)} jobs on record`);
      return perSecond;
    },
  };
}

async function product(ground: Ground, name: string, place: Place): Promise<Runner> {
  const server = await serveProduct(place, ["--no-worker"]);
  return loading(ground, name, server, () => metric(server, "jobtable_jobs_recorded"));
}

async function front(
  ground: Ground,
  peer: PeerName | "bare",
  name: string,
  place: Place,
  target?: Target,
): Promise<Rival> {
  const server = await serveFront(peer, place);
  const runner = loading(ground, name, server, async () => {
    const answer = await fetch(`${server.url}/recorded`);
    return ((await answer.json()) as { recorded: number }).recorded;
  });
  return target === undefined ? runner : { ...runner, target };
}

export async function httpOnSqlite(ground: Ground): Promise<Row[]> {
  needWrk();
  const memory = await ground.redis("memory");
  const always = await ground.redis("always");
  return await contest(
    {
      what: `${WORK} (SQLite FULL)`,
      unit: "req/s",
      product: await product(ground, "jobtable serve, SQLite", ground.sqlite()),
      peers: [
        await front(ground, "bare", "bare Fastify", {}, { atLeast: 0.75 }),
        await front(
          ground,
          "bullmq",
          "Fastify + BullMQ, Redis without fsync",
          { redisPort: memory.port },
          { atLeast: 1.5 },
        ),
        await front(ground, "bullmq", "Fastify + BullMQ, appendfsync always", {
          redisPort: always.port,
        }),
        await front(ground, "plainjob", "Fastify + plainjob, NORMAL", ground.sqlite()),
      ],
    },
    ground.effort.rounds,
  );
}

export async function httpOnPostgres(ground: Ground): Promise<Row[]> {
  needWrk();
  return await contest(
    {
      what: `${WORK} (PostgreSQL)`,
      unit: "req/s",
      product: await product(ground, "jobtable serve, PostgreSQL", await ground.database()),
      peers: [
        await front(ground, "bare", "bare Fastify", {}, { atLeast: 0.45 }),
        await front(ground, "pg-boss", "Fastify + pg-boss", await ground.database(), {
          atLeast: 8,
        }),
        await front(
          ground,
          "graphile-worker",
          "Fastify + graphile-worker",
          await ground.database(),
        ),
      ],
    },
    ground.effort.rounds,
  );
}
