/** A worker process from its start to its end: it claims and runs the jobs of a shared store. */
import { openLedger } from "../compose.js";
import { createEngine } from "../engine/engine.js";
import { maskStore } from "../config/values.js";
import { createLogger } from "../runtime/logger.js";
import { createTaskRegistry } from "../task/registry.js";
import { Closers } from "./closers.js";
import { EXIT, misuse, type ExitCode } from "./exit-code.js";
import { watchProcess } from "./process-end.js";
import { refuseMemory } from "./session.js";
import { tasksFrom } from "./task-files.js";
import type { Invocation } from "./verb.js";

export async function work(invocation: Invocation): Promise<ExitCode> {
  const { args, config, json, terminal, exit } = invocation;
  refuseMemory(config);
  if (!config.asyncEnabled)
    throw misuse("setting async_enabled: it is off, so a worker has nothing to do");
  const tasks = createTaskRegistry(await tasksFrom("worker", args));
  const logger = createLogger(config.logLevel);
  const closers = new Closers(logger);
  const end = watchProcess(process, exit, logger);
  try {
    const ledger = await openLedger(config.store, { logger });
    closers.add("ledger", () => ledger.close());
    const engine = createEngine({
      ledger,
      tasks,
      settings: config,
      logger,
      worker: true,
    });
    closers.add("engine", () => engine.stop());
    await engine.start();
    const { workerId } = engine.health();
    const store = maskStore(config.store);
    const { names } = tasks;
    terminal.print(
      json
        ? JSON.stringify({ worker_id: workerId, tasks: names, store })
        : `jobtable worker ${workerId ?? ""} ready\ntasks: ${names.join(", ")}\nstore: ${store}`,
    );
    const { kind } = await end.stopped;
    return kind === "fault" ? EXIT.failed : EXIT.done;
  } finally {
    await closers.closeAll();
    end.restore();
  }
}
