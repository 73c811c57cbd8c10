/** The stage of one run: counts what is done on it, and tells a script when its next moment has come. */
import type { SeededRandom } from "../sim/seeded-random.js";
import type { Watch } from "./books/watch.js";
import type { Fleet } from "./processes/fleet.js";
import type { Seat } from "./processes/seat.js";
import type { Moment, Stage } from "./scenario.js";
import type { Store } from "./stores/store.js";

export interface StageParts {
  readonly random: SeededRandom;
  readonly fleet: Fleet;
  readonly store: Store;
  readonly watch: Watch;
  readonly jobs: number;
  /** Whether nothing is left to run. */
  readonly over: () => boolean;
}

export class RunStage implements Stage {
  readonly random: SeededRandom;
  readonly workers: readonly Seat[];
  readonly servers: readonly Seat[];
  readonly store: Store;
  readonly deeds = new Map<string, number>();
  readonly #parts: StageParts;

  constructor(parts: StageParts) {
    this.#parts = parts;
    this.random = parts.random;
    this.workers = parts.fleet.workers;
    this.servers = parts.fleet.servers;
    this.store = parts.store;
  }

  readonly did = (what: string): void => {
    this.deeds.set(what, (this.deeds.get(what) ?? 0) + 1);
  };

  readonly moment = async ({ ms, share }: Moment): Promise<boolean> => {
    const { watch, jobs, over } = this.#parts;
    const enough = watch.ended + share * jobs;
    const dueMs = performance.now() + ms;
    await watch.until(() => over() || watch.ended >= enough || performance.now() >= dueMs);
    return !over();
  };
}
