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
  readonly brief: boolean;
  /** Whether nothing is left to run. */
  readonly over: () => boolean;
}

export class RunStage implements Stage {
  readonly brief: boolean;
  readonly random: SeededRandom;
  readonly workers: readonly Seat[];
  readonly servers: readonly Seat[];
  readonly store: Store;
  readonly deeds = new Map<string, number>();
  readonly #parts: StageParts;

  constructor(parts: StageParts) {
    this.#parts = parts;
    this.brief = parts.brief;
    this.random = parts.random;
    this.workers = parts.fleet.workers;
    this.servers = parts.fleet.servers;
    this.store = parts.store;
  }

  readonly did = (what: string): void => {
    this.deeds.set(what, (this.deeds.get(what) ?? 0) + 1);
  };

  readonly moment = ({ ms, share }: Moment): Promise<boolean> => {
    const { watch, jobs } = this.#parts;
    const enough = watch.ended + share * jobs;
    const dueMs = performance.now() + ms;
    return this.once(() => watch.ended >= enough || performance.now() >= dueMs);
  };

  readonly once = async (holds: () => boolean): Promise<boolean> => {
    const { watch, over } = this.#parts;
    await watch.until(() => over() || holds());
    return !over();
  };
}
