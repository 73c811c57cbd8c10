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

export type FromGuard =
  /** It looks, and has opened the ledger if it does so ahead. */
  | { readonly type: "ready" }
  /** The main thread is back; `beats`: how often the guard beat for it. */
  | { readonly type: "covered"; readonly heldUpMs: number; readonly beats: number };

/** To open a ledger may take a second on a busy machine: of a shorter `worker_timeout` too much would be over by then. */
const OPEN_AHEAD_BELOW_MS = 10_000;

/** Whether the guard opens the ledger before it needs it. */
export function opensAhead({ workerTimeoutMs }: StallLimits): boolean {
  return workerTimeoutMs < OPEN_AHEAD_BELOW_MS;
}
