/**
 * An engine to test on: virtual time, seeded chance, the memory ledger, and handlers that a test
 * holds in its hand. Nothing in it waits for real time.
 */
import type { EngineObserver, EngineSettings, Engine } from "../src/engine/api.js";
import { createEngine } from "../src/engine/engine.js";
import type { StartStallGuard } from "../src/engine/stall-guard.js";
import { LedgerError } from "../src/job/errors.js";
import type { Ledger } from "../src/ledger/ledger.js";
import { openMemoryLedger } from "../src/ledger/memory/memory-ledger.js";
import type { LogFields, Logger } from "../src/runtime/logger.js";
import type { Processes } from "../src/runtime/process-identity.js";
import type { Random } from "../src/runtime/random.js";
import { defineInline } from "../src/task/definition.js";
import { createTaskRegistry, type RegisteredTask } from "../src/task/registry.js";
import type { TaskContext, TaskOptions } from "../src/task/task.js";
import { settled, VirtualClock } from "./virtual-clock.js";

export const SETTINGS: EngineSettings = {
  asyncTimeoutMs: 0,
  asyncMaxQueue: 1_000,
  asyncJobTtlMs: 86_400_000,
  asyncMaxCompleted: 100_000,
  maxWorkers: 2,
  pollIntervalMs: 1_000,
  jobTimeoutMs: 3_600_000,
  workerTimeoutMs: 30_000,
  modelRunTimeoutMs: 0,
  maxQueueDepth: 0,
  cancelGraceMs: 1_000,
  shutdownTimeoutMs: 5_000,
};

/** One call of a handler that the test ends. */
export interface HeldCall {
  readonly input: unknown;
  readonly ctx: TaskContext;
  succeed(output: unknown): void;
  fail(error: unknown): void;
}

/** A task whose handlers do nothing until the test says what. */
export class HeldTask {
  readonly calls: HeldCall[] = [];
  /** Handlers that have begun and not ended. */
  running = 0;
  mostRunning = 0;
  readonly options: TaskOptions & { readonly name: string };

  constructor(name: string, options: Partial<TaskOptions> = {}) {
    this.options = {
      ...options,
      name,
      run: (input: unknown, ctx: TaskContext) => {
        this.running += 1;
        this.mostRunning = Math.max(this.mostRunning, this.running);
        return new Promise((resolve, reject) => {
          this.calls.push({ input, ctx, succeed: resolve, fail: reject });
        }).finally(() => {
          this.running -= 1;
        });
      },
    };
  }

  call(index: number): HeldCall {
    const call = this.calls[index];
    if (call === undefined) throw new Error(`call ${String(index)} has not begun`);
    return call;
  }
}

export interface LogLine {
  readonly level: keyof Logger;
  readonly fields: LogFields;
  readonly message: string;
}

export interface RigOptions {
  readonly settings?: Partial<EngineSettings>;
  readonly tasks?: readonly TaskOptions[];
  readonly ownTasks?: readonly RegisteredTask[];
  readonly worker?: boolean;
  readonly ledger?: Ledger;
  readonly clock?: VirtualClock;
  readonly processes?: Processes;
  readonly stallGuard?: StartStallGuard;
}

export interface Rig {
  readonly engine: Engine;
  readonly ledger: Ledger;
  readonly clock: VirtualClock;
  readonly logs: readonly LogLine[];
  /** What the observer was told, as short lines. */
  readonly seen: readonly string[];
}

export function createRig(options: RigOptions = {}): Rig {
  const clock = options.clock ?? new VirtualClock();
  const ledger = options.ledger ?? openMemoryLedger({ clock });
  const logs: LogLine[] = [];
  const seen: string[] = [];
  const engine = createEngine({
    ledger,
    tasks: createTaskRegistry(defineInline(options.tasks ?? [])),
    settings: { ...SETTINGS, ...options.settings },
    clock,
    random: seededRandom(1),
    logger: recordingLogger(logs),
    observer: recordingObserver(seen),
    worker: options.worker ?? true,
    ownTasks: options.ownTasks ?? [],
    stallGuard: options.stallGuard,
    // What the machine has to do besides is no matter of these tests.
    isBusy: () => false,
    ...(options.processes === undefined ? {} : { processes: options.processes }),
  });
  return { engine, ledger, clock, logs, seen };
}

/** A started engine for the length of `use`; stopped afterwards, whatever happens. */
export async function withRig(
  options: RigOptions,
  use: (rig: Rig) => Promise<void>,
): Promise<void> {
  const rig = createRig(options);
  await rig.engine.start();
  try {
    await use(rig);
  } finally {
    await stopped(rig);
  }
}

/** Stops the engine, moving the clock over every limit that its handlers may need. */
export async function stopped({ engine, clock }: Pick<Rig, "engine" | "clock">): Promise<void> {
  const stopping = engine.stop();
  const isStopped = (): boolean => engine.health().state === "stopped";
  for (let step = 0; step < 100 && !isStopped(); step += 1) {
    await settled();
    if (!isStopped()) await clock.advance(500);
  }
  await stopping;
}

/** Submits and answers the id; anything but acceptance is an error. */
export async function submitted(
  { engine }: Pick<Rig, "engine">,
  task: string,
  options: { readonly maxAttempts?: number; readonly timeoutMs?: number } = {},
  input: unknown = {},
): Promise<string> {
  const result = await engine.submit({ task, input, ...options });
  if (result.kind !== "accepted") throw new Error(`refused: ${result.kind}`);
  return result.job.jobId;
}

/** A linear congruential generator (Numerical Recipes): the same numbers for the same seed. */
export function seededRandom(seed: number): Random {
  let state = seed;
  return {
    unit() {
      state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
      return state / 2 ** 32;
    },
  };
}

function recordingLogger(lines: LogLine[]): Logger {
  const log = (level: keyof Logger) => (fields: LogFields, message: string) => {
    lines.push({ level, fields, message });
  };
  return { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") };
}

function recordingObserver(seen: string[]): EngineObserver {
  return {
    jobAccepted: (task) => seen.push(`accepted ${task}`),
    jobRefused: (task) => seen.push(`refused ${task}`),
    jobStarted: (task) => seen.push(`started ${task}`),
    jobEnded: (task, outcome) => seen.push(`ended ${task} ${outcome}`),
    requestRefused: (task) => seen.push(`request refused ${task}`),
    requestEnded: (task, outcome) => seen.push(`request ended ${task} ${outcome}`),
  };
}

type Verb = Exclude<keyof Ledger, "kind" | "plans" | "watch" | "onWork">;

/** The connection to a ledger, which a test can cut: the ledger itself goes on. */
export class Connection {
  /** Verbs that fail, or `all`. */
  down: "none" | "all" | readonly Verb[] = "none";
  /** How often each verb was called, also in vain. */
  readonly calls: Partial<Record<Verb, number>> = {};
  /** Called with each verb before it goes out. */
  before: ((verb: Verb) => void) | null = null;
  readonly ledger: Ledger;

  constructor(ledger: Ledger) {
    const through =
      <Args extends unknown[], Answer>(verb: Verb, call: (...args: Args) => Promise<Answer>) =>
      (...args: Args): Promise<Answer> => {
        this.calls[verb] = (this.calls[verb] ?? 0) + 1;
        this.before?.(verb);
        const isDown = this.down === "all" || (this.down !== "none" && this.down.includes(verb));
        return isDown
          ? Promise.reject(new LedgerError("ledger_unavailable", "the connection is cut"))
          : call(...args);
      };
    this.ledger = {
      kind: ledger.kind,
      get plans() {
        return ledger.plans;
      },
      submit: through("submit", (...args) => ledger.submit(...args)),
      claim: through("claim", (...args) => ledger.claim(...args)),
      settle: through("settle", (...args) => ledger.settle(...args)),
      heartbeat: through("heartbeat", (...args) => ledger.heartbeat(...args)),
      leave: through("leave", (...args) => ledger.leave(...args)),
      cancel: through("cancel", (...args) => ledger.cancel(...args)),
      get: through("get", (...args) => ledger.get(...args)),
      result: through("result", (...args) => ledger.result(...args)),
      payload: through("payload", (...args) => ledger.payload(...args)),
      list: through("list", (...args) => ledger.list(...args)),
      counts: through("counts", () => ledger.counts()),
      inspect: through("inspect", (...args) => ledger.inspect(...args)),
      workers: through("workers", () => ledger.workers()),
      expire: through("expire", (...args) => ledger.expire(...args)),
      reject: through("reject", (...args) => ledger.reject(...args)),
      rescue: through("rescue", (...args) => ledger.rescue(...args)),
      evict: through("evict", (...args) => ledger.evict(...args)),
      watch: (...args) => ledger.watch(...args),
      onWork: (...args) => ledger.onWork(...args),
      close: through("close", () => ledger.close()),
    };
  }

  /** Calls of all verbs so far. */
  get total(): number {
    return Object.values(this.calls).reduce((sum, count) => sum + count, 0);
  }
}
