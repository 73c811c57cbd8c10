import type { Scenario, Stage } from "../scenario.js";
import { undone } from "./bites.js";

const WORKER_TIMEOUT_S = 1;
/** Past the lease, and past the maintenance that finds it. */
const PAUSE_MS = 2_500;

export const paused: Scenario = {
  name: "paused",
  about: "workers stopped (SIGSTOP) until others have taken their jobs, then continued",
  leftOut: {},
  shape: {
    workers: 3,
    servers: 2,
    slots: 8,
    bound: 600,
    runMs: [20, 120],
    workerTimeoutS: WORKER_TIMEOUT_S,
  },
  async play(stage) {
    while (await stage.moment({ ms: 1_500, share: 0.25 })) await pauseAWorker(stage, PAUSE_MS);
  },
  bites: (bite) =>
    undone(bite, ["worker paused"]) ??
    (bite.stale > 0 ? null : "no paused worker had its job taken"),
};

export async function pauseAWorker(stage: Stage, ms: number): Promise<void> {
  const up = stage.workers.filter((seat) => seat.ready);
  const seat = up[stage.random.between(0, up.length - 1)];
  if (seat === undefined) return;
  stage.did("worker paused");
  await seat.pause(ms);
}
