/**
 * Goes with a job to its end. Changes of its state arrive by themselves; progress is looked at once
 * a second while someone watches. A server that restarts meanwhile is waited for, one of HTTP or a
 * store's: the job goes on.
 */
import { ClientError } from "../client/transport.js";
import type { Jobs } from "../client/jobs.js";
import { hasEnded, type JobView } from "../client/replies.js";
import { LedgerError } from "../job/errors.js";
import type { Clock } from "../runtime/clock.js";
import { jobLine } from "./job-text.js";
import type { Terminal } from "./terminal.js";

const WATCHED_TICK_MS = 1_000;
const UNWATCHED_TICK_MS = 30_000;
/** A deploy takes less; a server that is gone for longer may not come back. */
const PATIENCE_MS = 60_000;
const PAUSE_MS = 500;

export interface FollowOptions {
  readonly clock: Clock;
  /** Left out: to the job's end. */
  readonly limitMs?: number;
  /** Whether someone sees each look. */
  readonly watched: boolean;
  readonly seen?: (job: JobView) => void;
}

/** @returns the last look: not ended where the time has passed, or where the job was forgotten. */
export async function follow(
  jobs: Jobs,
  first: JobView,
  { clock, limitMs = Infinity, watched, seen = () => undefined }: FollowOptions,
): Promise<JobView> {
  const startedMs = clock.monotonicMs();
  let last = first;
  seen(last);
  while (!hasEnded(last)) {
    const leftMs = limitMs - (clock.monotonicMs() - startedMs);
    if (leftMs <= 0) break;
    const tickMs = Math.min(leftMs, watched ? WATCHED_TICK_MS : UNWATCHED_TICK_MS);
    const next = await patiently(clock, () => jobs.wait(last.job_id, tickMs));
    if (next === null) break;
    last = next;
    seen(last);
  }
  return last;
}

/** As `follow`, with a line about the job on standard error while someone watches there. */
export async function awaitEnd(
  jobs: Jobs,
  first: JobView,
  terminal: Terminal,
  options: Pick<FollowOptions, "clock" | "limitMs">,
): Promise<JobView> {
  const status = terminal.liveStatus();
  try {
    return await follow(jobs, first, {
      ...options,
      watched: status !== null,
      seen: (job) => status?.show(jobLine(job)),
    });
  } finally {
    status?.clear();
  }
}

/** Tries again while the server, or the store, is out of reach for a while; every other failure is passed on. */
export async function patiently<Answer>(clock: Clock, ask: () => Promise<Answer>): Promise<Answer> {
  const startedMs = clock.monotonicMs();
  for (;;)
    try {
      return await ask();
    } catch (error) {
      if (!mayPass(error) || clock.monotonicMs() - startedMs > PATIENCE_MS) throw error;
      await new Promise<void>((resolve) => clock.timer(PAUSE_MS, resolve));
    }
}

function mayPass(error: unknown): boolean {
  if (error instanceof LedgerError) return error.code === "ledger_unavailable";
  return error instanceof ClientError && ["unreachable", "unavailable"].includes(error.reason);
}
