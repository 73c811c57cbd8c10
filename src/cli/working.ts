/** A worker process from its start to its end: it claims and runs the jobs of a shared store. */
import { openLedger } from "../compose.js";
import { planWork } from "../compose/plans.js";
import { stallGuardOn } from "../compose/stall-guard.js";
import { processEnvironment } from "../config.js";
import type { Config } from "../config/settings.js";
import { maskStore } from "../config/values.js";
import type { Engine } from "../engine/api.js";
import { createEngine } from "../engine/engine.js";
import { systemClock } from "../runtime/clock.js";
import { createLogger, type Logger } from "../runtime/logger.js";
import { createTaskRegistry, type TaskRegistry } from "../task/registry.js";
import { Closers } from "./closers.js";
import { EXIT, misuse, type ExitCode } from "./exit-code.js";
import { watchProcess } from "./process-end.js";
import { reachLedger } from "./reach-ledger.js";
import { refuseMemory } from "./session.js";
import { tasksFrom } from "./task-files.js";
import type { Invocation } from "./verb.js";

export async function work(invocation: Invocation): Promise<ExitCode> {
  const { args, config, json, terminal, exit } = invocation;
  refuseMemory(config);
  if (!config.asyncEnabled)
    throw misuse("setting async_enabled: it is off, so a worker has nothing to do");
  // One for plans alone needs no tasks.
  const tasks = createTaskRegistry(
    config.plans && args.length === 0 ? [] : await tasksFrom("worker", args),
  );
  const logger = createLogger(config.logLevel);
  const closers = new Closers(logger);
  const end = watchProcess(process, exit, logger);
  try {
    // A signal counts from the start: what is still being opened then is left as it is.
    const engine = await Promise.race([
      start({ config, tasks, logger, closers, stopped: end.stopped }),
      end.stopped.then(() => null),
    ]);
    if (engine !== null) {
      const { workerId } = engine.health();
      const store = maskStore(config.store);
      const { names } = tasks;
      const { plans } = config;
      const runs = [...names, ...(plans ? ["plans"] : [])].join(", ");
      terminal.print(
        json
          ? JSON.stringify({ worker_id: workerId, tasks: names, plans, store })
          : `jobtable worker ${workerId ?? ""} ready\nruns: ${runs}\nstore: ${store}`,
      );
    }
    const { kind } = await end.stopped;
    return kind === "fault" ? EXIT.failed : EXIT.done;
  } finally {
    await closers.closeAll();
    end.restore();
  }
}

interface WorkerParts {
  readonly config: Config;
  readonly tasks: TaskRegistry;
  readonly logger: Logger;
  /** What was opened, also when a later step fails. */
  readonly closers: Closers;
  /** The process is to stop. */
  readonly stopped: Promise<unknown>;
}

/** @returns the engine, once it claims; null where it is to stop before the ledger was reached. */
async function start(parts: WorkerParts): Promise<Engine | null> {
  const { config, tasks, logger, closers, stopped } = parts;
  const reach = { store: config.store, clock: systemClock, logger, stopped };
  const ledger = await reachLedger(() => openLedger(config.store, { logger }), reach);
  if (ledger === null) return null;
  closers.add("ledger", () => ledger.close());
  const stallGuard = stallGuardOn(config.store, logger);
  const ports = { ledger, tasks, settings: config, logger };
  const plans = config.plans ? planWork({ ...ports, env: processEnvironment() }) : null;
  const engine = createEngine({ ...ports, ...plans?.parts, stallGuard, worker: true });
  closers.add("engine", () => engine.stop());
  await reachLedger(() => engine.start(), reach);
  if (plans !== null) closers.add("plans", plans.sweep());
  return engine;
}
