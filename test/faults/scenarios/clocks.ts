import type { Scenario } from "../scenario.js";
import { rightClocks, undone } from "./bites.js";
import { killAWorker } from "./killed.js";

const AHEAD_MS = 120_000;
const BEHIND_MS = -120_000;

export const clocks: Scenario = {
  name: "clocks",
  about: "one worker's clock two minutes ahead, another's two behind, and a server's ahead",
  leftOut: { sqlite: "the processes on one file share their machine's clock" },
  shape: {
    workers: 3,
    servers: 2,
    slots: 8,
    bound: 600,
    runMs: [0, 40],
    workerTimeoutS: 3,
    clockShifts: { "worker-1": AHEAD_MS, "worker-2": BEHIND_MS, "server-1": AHEAD_MS },
  },
  async play(stage) {
    while (await stage.moment({ ms: 4_000, share: 0.4 })) await killAWorker(stage);
  },
  bites: (bite) => undone(bite, ["worker killed"]) ?? rightClocks(bite, clocks.shape),
};
