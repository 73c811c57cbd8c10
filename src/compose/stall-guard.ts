/**
 * Starts the thread that beats for a worker whose main thread is held up, and tells it that it is
 * not: the main thread counts up a shared number, the guard looks at it. Nothing else happens while
 * the main thread is alive.
 */
import { Worker } from "node:worker_threads";
import type { StallGuard, StallLimits, StartStallGuard } from "../engine/stall-guard.js";
import { systemClock } from "../runtime/clock.js";
import type { Logger } from "../runtime/logger.js";
import { within } from "../runtime/within.js";
import {
  opensAhead,
  type FromGuard,
  type GuardData,
  type ToGuard,
} from "./stall-guard-protocol.js";

/** The thread ends what it has begun; a ledger that hangs must not hold up a shutdown. */
const STOP_LIMIT_MS = 1_000;
const LOOKS_PER_TIMEOUT = 10;
const SHORTEST_LOOK_MS = 25;
const LONGEST_LOOK_MS = 3_000;

/** @returns undefined for a store in memory: nobody else could take its worker for lost. */
export function stallGuardOn(store: string, logger: Logger): StartStallGuard | undefined {
  if (store === "memory") return undefined;
  return (limits) => startGuard(store, limits, logger);
}

function startGuard(store: string, limits: StallLimits, logger: Logger): StallGuard {
  const lookEveryMs = Math.min(
    Math.max(limits.workerTimeoutMs / LOOKS_PER_TIMEOUT, SHORTEST_LOOK_MS),
    LONGEST_LOOK_MS,
  );
  const turns = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const workerData: GuardData = { ...limits, store, lookEveryMs, turns };
  // Flags of a program given as text would keep a thread from starting.
  const worker = new Worker(new URL("./stall-guard-thread.js", import.meta.url), {
    name: "jobtable stall guard",
    workerData,
    execArgv: [],
  });
  worker.unref();
  worker.on("error", (error) => {
    logger.warn({ err: error }, "the stall guard failed: inline handlers should not spin");
  });
  let isReady = (): void => undefined;
  const ready = new Promise<void>((resolve) => (isReady = resolve));
  if (!opensAhead(limits)) isReady();
  worker.on("message", (message: FromGuard) => {
    if (message.type === "ready") isReady();
    else
      logger.warn(
        { held_up_ms: Math.round(message.heldUpMs), beats: message.beats },
        "an inline handler held up the event loop: a task that computes belongs in a thread",
      );
  });
  const gone = new Promise<void>((resolve) => {
    worker.once("exit", () => {
      isReady();
      resolve();
    });
  });
  const send = (message: ToGuard): void => {
    worker.postMessage(message);
  };
  let cancelTurn = (): void => undefined;
  const countTurn = (): void => {
    Atomics.add(turns, 0, 1);
    cancelTurn = systemClock.timer(lookEveryMs, countTurn);
  };
  countTurn();
  let stopping: Promise<void> | null = null;
  return {
    ready,
    known(row) {
      send({ type: "row", row });
    },
    stop() {
      stopping ??= (async () => {
        send({ type: "stop" });
        await within(systemClock, STOP_LIMIT_MS, gone, () => worker.terminate());
        cancelTurn();
      })();
      return stopping;
    },
  };
}
