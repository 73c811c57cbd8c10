/** What a scenario is: a shape, and a script of faults that is played while jobs come and go. */
import type { SeededRandom } from "../sim/seeded-random.js";
import type { Seat } from "./processes/seat.js";
import type { Store, StoreKind } from "./stores/store.js";

export interface Scenario {
  /** For `--only`. */
  readonly name: string;
  /** One line. */
  readonly about: string;
  /** Why it is not played on a store; a store that is not named has it played. */
  readonly leftOut: Partial<Readonly<Record<StoreKind, string>>>;
  /** Of the jobs that a run is asked for; default 1. */
  readonly shareOfJobs?: Partial<Readonly<Record<StoreKind, number>>>;
  readonly shape: Shape;
  /** Plays until nothing is left to run, and at least what makes it this scenario. */
  readonly play: (stage: Stage) => Promise<void>;
  /** What the faults must have brought about, or the run has shown nothing. */
  readonly bites: (bite: Bite) => string | null;
}

export interface Shape {
  readonly workers: number;
  readonly servers: number;
  /** Of each worker. */
  readonly slots: number;
  readonly bound: number;
  /** Shortest and longest run, ms. */
  readonly runMs: readonly [number, number];
  readonly workerTimeoutS: number;
  /** How far the clocks of some processes are off, by the name of their seat, ms; not on SQLite, whose processes share a machine. */
  readonly clockShifts?: Readonly<Record<string, number>>;
  /** Whether the processes reach the server through a proxy that can swallow. */
  readonly proxy?: boolean;
  /** The store lies on a disk of this size. */
  readonly diskMb?: number;
  /** The processes are started by the script. */
  readonly startsEmpty?: boolean;
}

/** What can be known about a fault's effect. */
export interface Bite {
  readonly kind: StoreKind;
  /** See `Stage`. */
  readonly brief: boolean;
  /** Runs that never ended: their process was killed. */
  readonly cut: number;
  /** Runs that ended well after they had lost their job. */
  readonly stale: number;
  readonly count: (what: string) => number;
  /** How far the clock of a worker was from the ledger's, by what its runs wrote down, ms; undefined where it ran nothing. */
  readonly clockOffMs: (seat: string) => number | undefined;
}

export interface Moment {
  readonly ms: number;
  /** Of all jobs. */
  readonly share: number;
}

/** What a script acts upon. */
export interface Stage {
  /** A run of seconds: what takes long by nature is left out. */
  readonly brief: boolean;
  readonly random: SeededRandom;
  readonly workers: readonly Seat[];
  readonly servers: readonly Seat[];
  readonly store: Store;
  /** How often something was done, for the report. */
  readonly did: (what: string) => void;
  /**
   * Resolves when so much time has passed or such a share of all jobs has ended since the call,
   * whichever is first: by the first a long run has its rhythm, by the second a short one has its
   * faults. False when nothing is left to run.
   */
  readonly moment: (when: Moment) => Promise<boolean>;
  /** Resolves when it holds; false when nothing is left to run before. */
  readonly once: (holds: () => boolean) => Promise<boolean>;
}
