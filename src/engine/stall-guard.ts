/**
 * What beats for a worker while its event loop is held up by an inline handler that spins: someone
 * outside of this thread, since nothing in it gets a turn then. The engine knows only when to start
 * and stop it; who it is, and how it reaches the ledger, is up to compose.ts.
 *
 * It beats for the worker, not for its jobs: what spins for ever is still found by `job_timeout`.
 */
import type { WorkerBeat } from "../ledger/ledger.js";

export interface StallGuard {
  /** Resolves when it can beat in time; until then nothing that may spin should begin. Never rejects. */
  readonly ready: Promise<void>;
  /** The worker's row as it is now; the guard repeats the last one. */
  known(row: WorkerBeat): void;
  /** Resolves when it beats no more, whatever it was at. Idempotent; never rejects. */
  stop(): Promise<void>;
}

export interface StallLimits {
  /** After this long without a beat the worker would be taken for lost. */
  readonly workerTimeoutMs: number;
  /** It gives up on what is held up for longer. */
  readonly jobTimeoutMs: number;
}

export type StartStallGuard = (limits: StallLimits) => StallGuard;
