import type { Seat } from "../processes/seat.js";
import type { Scenario, Stage } from "../scenario.js";
import { undone } from "./bites.js";

export const killed: Scenario = {
  name: "killed",
  about: "workers killed with -9 every second and started anew, and now and then a server",
  leftOut: {},
  shape: {
    workers: 3,
    servers: 2,
    slots: 8,
    bound: 600,
    runMs: [0, 40],
    workerTimeoutS: 3,
  },
  async play(stage) {
    for (let kills = 1; await stage.moment({ ms: 1_000, share: 0.2 }); kills += 1) {
      await killAWorker(stage);
      if (kills % 4 === 1) await killAServer(stage);
    }
  },
  bites: (bite) =>
    undone(bite, ["worker killed", "server killed"]) ??
    // A few kills may all find their worker between two jobs.
    (bite.brief || bite.cut > 0 ? null : "no job lost its worker"),
};

/** It comes back by itself. */
export async function killAWorker(stage: Stage): Promise<void> {
  await killOneOf(stage, stage.workers, "worker killed");
}

export async function killAServer(stage: Stage): Promise<void> {
  await killOneOf(stage, stage.servers, "server killed");
}

/** Once another one is up: where processes start slowly, nothing would ever get done otherwise. */
async function killOneOf(stage: Stage, seats: readonly Seat[], deed: string): Promise<void> {
  const up = (): Seat[] => seats.filter((seat) => seat.ready);
  if (!(await stage.once(() => up().length > 1))) return;
  const seat = up()[stage.random.between(0, up().length - 1)];
  if (seat === undefined) return;
  await seat.kill();
  stage.did(deed);
  void seat.start();
}
