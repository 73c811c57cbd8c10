/** What a run of kills is asked for, and what it found. */
import type { Phase } from "../../../src/job/job.js";

export interface KillOptions {
  readonly kills: number;
  readonly seed: number;
  readonly say?: (line: string) => void;
}

export interface KillReport {
  readonly kills: Readonly<Record<Phase, number>>;
  /** Of them, those that met a command that ran the phase in place. */
  readonly inPlace: number;
  /** Those after which a command came first, and recovered; after the others a worker did. */
  readonly byCommand: number;
  /** Kills that met the phase between its start and its end. */
  readonly met: number;
  /** Of the applies that were met: taken back, finished. */
  readonly takenBack: number;
  readonly finished: number;
  /** The workspace was neither as before nor fully changed when the process had died. */
  readonly torn: number;
  readonly tookMs: number;
  /** What does not hold; empty when all does. */
  readonly faults: readonly string[];
}

/** What came after a kill: which command, or null for a worker, and how it ended. */
export interface After {
  readonly kill: number;
  readonly next: Phase | null;
  readonly code: number | null;
}
