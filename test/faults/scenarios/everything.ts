import type { Scenario, Stage } from "../scenario.js";
import { rightClocks, undone } from "./bites.js";
import { killAServer, killAWorker } from "./killed.js";
import { pauseAWorker } from "./paused.js";
import { fast, immediate } from "./restarted.js";

export const everything: Scenario = {
  name: "everything",
  about:
    "three workers and two servers on one store; workers killed every second and paused, servers killed, PostgreSQL restarted twice, clocks off",
  leftOut: {},
  shareOfJobs: { postgres: 2.5 },
  shape: {
    workers: 3,
    servers: 2,
    slots: 8,
    bound: 600,
    runMs: [0, 40],
    workerTimeoutS: 2,
    clockShifts: { "worker-1": 120_000, "worker-2": -120_000, "server-1": 120_000 },
  },
  async play(stage) {
    await Promise.all([killing(stage), pausing(stage), restarting(stage)]);
  },
  bites: (bite) =>
    undone(bite, ["worker killed", "server killed", "worker paused"]) ??
    (bite.kind === "sqlite"
      ? null
      : (undone(bite, ["restart in order", "restart as after a crash"]) ??
        rightClocks(bite, everything.shape))),
};

async function killing(stage: Stage): Promise<void> {
  for (let kills = 1; await stage.moment({ ms: 1_000, share: 0.2 }); kills += 1) {
    await killAWorker(stage);
    if (kills % 8 === 1) await killAServer(stage);
  }
}

async function pausing(stage: Stage): Promise<void> {
  while (await stage.moment({ ms: 6_000, share: 0.4 })) await pauseAWorker(stage, 4_000);
}

async function restarting(stage: Stage): Promise<void> {
  if (stage.store.server === null) return;
  for (const restart of [fast, immediate]) {
    // Jobs go on ending until it is down: of a few hundred not many may be left for the second one.
    const share = stage.brief ? 0.1 : 0.3;
    if (!(await stage.moment({ ms: 3_600_000, share }))) return;
    await restart(stage);
  }
}
