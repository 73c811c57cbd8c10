/** Random commands for a ledger, as data: fast-check makes them, shrinks them and prints them. */
import fc from "fast-check";
import { OTHER_WORKER, WORKER } from "./acts.js";

export const WORKERS = [WORKER, OTHER_WORKER, "worker-0000000c"] as const;
export const TASKS = ["echo", "ocr", "constructor"] as const;
/**
 * Time passes in steps of ten seconds and limits lie half a step between them, so that the moments
 * that a real clock adds decide nothing.
 */
export const STEP_MS = 10_000;
const HALF_STEPS_MS = [5_000, 25_000, 45_000, 95_000];

/** Which job: the `at`-th (modulo) of those that are running, or of all that ever were. */
export interface Pick {
  readonly running: boolean;
  readonly at: number;
}

export interface SettlePick extends Pick {
  /** Whose claim: the present one, an older attempt, or another worker's. */
  readonly held: "present" | "stale" | "foreign";
  readonly event: "succeed" | "fail" | "time_out" | "stop" | "retry" | "release";
  readonly delayMs: number;
}

export interface SubmitItem {
  readonly task: string;
  readonly priority: number;
  readonly maxAttempts: number;
  readonly delayMs: number;
  /** Whether a delay is given as a time. */
  readonly byTime: boolean;
  readonly key: string | null;
  readonly fingerprint: string;
}

export type Command = { readonly handle: number } & (
  | { readonly verb: "submit"; readonly items: readonly SubmitItem[]; readonly whole: boolean }
  | {
      readonly verb: "claim";
      readonly worker: string;
      readonly tasks: readonly string[];
      readonly limit: number;
    }
  | { readonly verb: "settle"; readonly picks: readonly SettlePick[] }
  | {
      readonly verb: "heartbeat";
      readonly worker: string;
      readonly tasks: readonly string[];
      readonly picks: readonly (Pick & { readonly progress: boolean })[];
    }
  | { readonly verb: "cancel"; readonly picks: readonly Pick[] }
  | { readonly verb: "leave"; readonly worker: string }
  | { readonly verb: "age"; readonly steps: number }
  | { readonly verb: "expire"; readonly limitMs: number; readonly chunk: number }
  | {
      readonly verb: "reject";
      readonly workerId: string;
      readonly graceMs: number;
      readonly workerTimeoutMs: number;
      readonly chunk: number;
    }
  | {
      readonly verb: "rescue";
      readonly jobTimeoutMs: number;
      readonly workerTimeoutMs: number;
      readonly gone: readonly string[];
      readonly chunk: number;
    }
  | {
      readonly verb: "evict";
      readonly ttlMs: number;
      readonly keep: number;
      readonly chunk: number;
    }
  | {
      readonly verb: "inspect";
      readonly jobTimeoutMs: number;
      readonly workerTimeoutMs: number;
      readonly chunk: number;
    }
  | {
      readonly verb: "list";
      readonly statuses: readonly Status[] | null;
      readonly task: string | null;
      readonly limit: number;
    }
);

type Status = "queued" | "running" | "succeeded" | "failed" | "timed_out" | "cancelled";

const worker = fc.constantFrom(...WORKERS);
const tasks = fc.subarray([...TASKS]);
const mostTasks = fc.oneof({ weight: 3, arbitrary: fc.constant([...TASKS]) }, tasks);
const limitMs = fc.constantFrom(...HALF_STEPS_MS);
const delayMs = fc.constantFrom(0, 0, 15_000);
const chunk = fc.integer({ min: 1, max: 4 });
const handle = fc.nat({ max: 1 });
const pick = { running: fc.boolean(), at: fc.nat({ max: 30 }) };

const submit = fc.record({
  verb: fc.constant("submit" as const),
  handle,
  whole: fc.oneof({ weight: 3, arbitrary: fc.constant(false) }, fc.constant(true)),
  items: fc.array(
    fc.record({
      task: fc.constantFrom(...TASKS),
      priority: fc.constantFrom(0, 0, 1, -1),
      maxAttempts: fc.integer({ min: 1, max: 3 }),
      delayMs,
      byTime: fc.boolean(),
      key: fc.option(fc.constantFrom("a", "b", "c"), { freq: 2 }),
      fingerprint: fc.constantFrom("f", "f", "f", "g"),
    }),
    { minLength: 1, maxLength: 4 },
  ),
});
const claim = fc.record({
  verb: fc.constant("claim" as const),
  handle,
  worker,
  tasks: mostTasks,
  limit: fc.integer({ min: -1, max: 4 }),
});
const settle = fc.record({
  verb: fc.constant("settle" as const),
  handle,
  picks: fc.array(
    fc.record({
      running: fc.oneof({ weight: 4, arbitrary: fc.constant(true) }, fc.boolean()),
      at: pick.at,
      held: fc.oneof(
        { weight: 4, arbitrary: fc.constant("present" as const) },
        fc.constantFrom("stale" as const, "foreign" as const),
      ),
      event: fc.constantFrom(
        "succeed" as const,
        "fail" as const,
        "time_out" as const,
        "stop" as const,
        "retry" as const,
        "retry" as const,
        "release" as const,
      ),
      delayMs,
    }),
    { minLength: 1, maxLength: 3 },
  ),
});
const heartbeat = fc.record({
  verb: fc.constant("heartbeat" as const),
  handle,
  worker,
  tasks: mostTasks,
  picks: fc.array(fc.record({ ...pick, progress: fc.boolean() }), { maxLength: 4 }),
});
const cancel = fc.record({
  verb: fc.constant("cancel" as const),
  handle,
  picks: fc.array(fc.record(pick), { minLength: 1, maxLength: 2 }),
});
const sweeps = [
  fc.record({ verb: fc.constant("expire" as const), handle, limitMs, chunk }),
  fc.record({
    verb: fc.constant("reject" as const),
    handle,
    workerId: worker,
    graceMs: limitMs,
    workerTimeoutMs: limitMs,
    chunk,
  }),
  fc.record({
    verb: fc.constant("rescue" as const),
    handle,
    jobTimeoutMs: limitMs,
    workerTimeoutMs: limitMs,
    gone: fc.subarray([...WORKERS]),
    chunk,
  }),
  fc.record({
    verb: fc.constant("evict" as const),
    handle,
    ttlMs: limitMs,
    keep: fc.integer({ min: 0, max: 5 }),
    chunk,
  }),
] as const;
const leave = fc.record({ verb: fc.constant("leave" as const), handle, worker });
const age = fc.record({
  verb: fc.constant("age" as const),
  handle,
  steps: fc.integer({ min: 1, max: 6 }),
});
const inspect = fc.record({
  verb: fc.constant("inspect" as const),
  handle,
  jobTimeoutMs: limitMs,
  workerTimeoutMs: limitMs,
  chunk,
});
const list = fc.record({
  verb: fc.constant("list" as const),
  handle,
  statuses: fc.option(
    fc.subarray<Status>(["queued", "running", "succeeded", "failed", "timed_out", "cancelled"], {
      minLength: 1,
    }),
  ),
  task: fc.option(fc.constantFrom(...TASKS)),
  limit: fc.integer({ min: 1, max: 4 }),
});

/** Weighted so that most of a sequence is jobs on their way. */
export const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 5, arbitrary: submit },
  { weight: 6, arbitrary: claim },
  { weight: 6, arbitrary: settle },
  { weight: 3, arbitrary: heartbeat },
  { weight: 2, arbitrary: cancel },
  { weight: 2, arbitrary: age },
  { weight: 1, arbitrary: leave },
  { weight: 1, arbitrary: list },
  { weight: 1, arbitrary: inspect },
  ...sweeps,
);
