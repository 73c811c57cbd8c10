import { pause } from "../pause.js";
import type { Scenario, Stage } from "../scenario.js";
import { undone } from "./bites.js";

export const disk: Scenario = {
  name: "disk",
  about: "the store's disk is full for seconds, again and again",
  leftOut: {},
  shape: {
    workers: 3,
    servers: 2,
    slots: 8,
    bound: 600,
    runMs: [0, 40],
    workerTimeoutS: 5,
    diskMb: 400,
  },
  async play(stage) {
    while (await stage.moment({ ms: 4_000, share: 0.25 })) await fillUp(stage);
  },
  bites: (bite) => undone(bite, ["disk full"]),
};

async function fillUp({ store, random, did }: Stage): Promise<void> {
  store.disk?.fill();
  did("disk full");
  await pause(random.between(2_000, 4_000));
  store.disk?.makeRoom();
  // A server that could not even write its log has given up; its operator starts it again.
  await store.server?.restart("immediate");
}
