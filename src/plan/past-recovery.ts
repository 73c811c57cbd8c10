/**
 * Waits for whoever only takes something back, such as a worker that starts: it is done in a moment, and a
 * phase that met it would fail for nothing. One that applies is not waited for.
 */
import type { Clock } from "../runtime/clock.js";
import { jobOf, WorkspaceBusy } from "./apply/busy.js";

/** A large patch on a slow disk takes longer; then it is told, as it is of one that nobody can see. */
const PATIENCE_MS = 5_000;
/** A lock between processes tells nobody that it is free. */
const PAUSE_MS = 100;

/** @throws WorkspaceBusy when an apply has the workspace, or a recovery for too long; the signal's reason. */
export async function pastRecovery<T>(
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
  work: () => Promise<T>,
): Promise<T> {
  const untilMs = clock.monotonicMs() + PATIENCE_MS;
  for (;;)
    try {
      return await work();
    } catch (error) {
      const isMoment = error instanceof WorkspaceBusy && jobOf(error.holder) === null;
      if (!isMoment || clock.monotonicMs() >= untilMs) throw error;
      await new Promise<void>((resolve) => clock.timer(PAUSE_MS, resolve));
      signal.throwIfAborted();
    }
}
