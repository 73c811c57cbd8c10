/**
 * The start of a process that serves, while its database server is not there yet: under a service
 * manager both are started at once, and the server may come up seconds later, or restart just now. So
 * what can't be reached is waited for, however long it takes, and the log says so (and `serve` listens
 * meanwhile, so that it is not taken for dead); what can never
 * work (a refused login, a newer schema, a wrong setting) fails at once. So does a SQLite file: it is
 * on this machine, or the path is wrong.
 */
import { LedgerError } from "../job/errors.js";
import type { Clock } from "../runtime/clock.js";
import type { Logger } from "../runtime/logger.js";

/** A server that restarts is back within a second or two; one that is away longer is not hammered. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;
/** So that whoever looks at the log later still sees why nothing happens. */
const SAY_AGAIN_MS = 60_000;

export interface ReachOptions {
  /** The `store` setting. */
  readonly store: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Ends the waiting. */
  readonly stopped: Promise<unknown>;
}

/**
 * Calls until the ledger answers.
 * @returns null when `stopped` came first. @throws what `call` rejects with and waiting can't mend.
 */
export async function reachLedger<T>(
  call: () => Promise<T>,
  { store, clock, logger, stopped }: ReachOptions,
): Promise<T | null> {
  const stop = new AbortController();
  void stopped.then(() => {
    stop.abort();
  });
  let saidMs = -Infinity;
  for (let tries = 0; !stop.signal.aborted; tries += 1) {
    try {
      const answer = await call();
      if (tries > 0) logger.info({}, "the ledger answers");
      return answer;
    } catch (error) {
      if (!mayCome(error, store)) throw error;
      const nowMs = clock.monotonicMs();
      if (nowMs - saidMs >= SAY_AGAIN_MS) {
        saidMs = nowMs;
        logger.warn({ err: error }, "the ledger can't be reached yet; trying until it answers");
      }
    }
    await pause(clock, Math.min(FIRST_PAUSE_MS * 2 ** Math.min(tries, 16), LONGEST_PAUSE_MS), stop);
  }
  return null;
}

function mayCome(error: unknown, store: string): boolean {
  return (
    /^postgres(ql)?:/.test(store) &&
    error instanceof LedgerError &&
    error.code === "ledger_unavailable"
  );
}

function pause(clock: Clock, ms: number, { signal }: AbortController): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      signal.removeEventListener("abort", end);
      resolve();
    };
    const cancel = clock.timer(ms, end);
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
  });
}
