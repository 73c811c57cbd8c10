/** The database server goes away in every way that it can. */
import pg from "pg";
import { pause } from "../pause.js";
import type { Scenario, Stage } from "../scenario.js";
import { undone } from "./bites.js";
import type { PostgresServer } from "../../postgres-server.js";

export const restarted: Scenario = {
  name: "restarted",
  about:
    "PostgreSQL comes late, is restarted in order and as after a crash, is away for long; connections are cut, or swallow everything",
  leftOut: { sqlite: "SQLite has no server" },
  shape: {
    workers: 3,
    servers: 2,
    slots: 8,
    bound: 600,
    runMs: [0, 40],
    workerTimeoutS: 5,
    proxy: true,
    startsEmpty: true,
  },
  async play(stage) {
    await comeLate(stage);
    const acts = stage.brief ? [cut, immediate] : LONG;
    for (const act of acts) {
      if (!(await stage.moment({ ms: 4_000, share: 0.12 }))) return;
      await act(stage);
    }
  },
  bites: (bite) =>
    undone(bite, [
      ...["late start", "all connections cut", "restart as after a crash"],
      ...(bite.brief ? [] : ["restart in order", "swallowed", "away for ten seconds"]),
    ]),
};

export function serverOf({ store }: Stage): PostgresServer {
  if (store.server === null) throw new Error(`${store.kind} has no server`);
  return store.server;
}

/** The processes are started while there is nobody to connect to, as by a service manager. */
async function comeLate(stage: Stage): Promise<void> {
  await serverOf(stage).halt("fast");
  const up = Promise.all([...stage.servers, ...stage.workers].map((seat) => seat.start()));
  await pause(stage.random.between(2_000, 3_000));
  await serverOf(stage).resume();
  await up;
  stage.did("late start");
}

async function cut(stage: Stage): Promise<void> {
  const admin = new pg.Client({ connectionString: serverOf(stage).url });
  await admin.connect();
  await admin.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'",
  );
  await admin.end();
  stage.did("all connections cut");
}

export async function fast(stage: Stage): Promise<void> {
  await serverOf(stage).restart("fast");
  stage.did("restart in order");
}

export async function immediate(stage: Stage): Promise<void> {
  await serverOf(stage).restart("immediate");
  stage.did("restart as after a crash");
}

async function swallow(stage: Stage): Promise<void> {
  stage.store.proxy?.swallow();
  stage.did("swallowed");
  await pause(stage.random.between(500, 1_500));
}

async function longAway(stage: Stage): Promise<void> {
  await serverOf(stage).halt("fast");
  await pause(stage.random.between(8_000, 12_000));
  await serverOf(stage).resume();
  stage.did("away for ten seconds");
}

const LONG = [cut, fast, immediate, swallow, cut, immediate, longAway];
