/** What the process and its stall guard's thread say to each other. */
import type { StallLimits } from "../engine/stall-guard.js";
import type { WorkerBeat } from "../ledger/ledger.js";

export interface GuardData extends StallLimits {
  readonly store: string;
  /** How often the main thread counts up, and the guard looks. */
  readonly lookEveryMs: number;
  /** One number in shared memory; as long as it changes, the main thread is alive. */
  readonly turns: Int32Array;
}

export type ToGuard =
  | { readonly type: "row"; readonly row: WorkerBeat }
  /** Ends the thread, after the beat that is under way. */
  | { readonly type: "stop" };

/** The main thread is back. */
export interface FromGuard {
  readonly heldUpMs: number;
  /** How often the guard beat for it. */
  readonly beats: number;
}
