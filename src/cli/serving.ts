/**
 * A serving process from its start to its end. It listens at once, so that whoever watches it sees
 * that it is alive while it waits for its database server; the address is printed when requests are
 * served, not before. It stops in this order: /ready answers 503 and nothing new is taken, running jobs end and
 * are recorded, requests under way are answered, the ledger is closed.
 */
import { openLedger } from "../compose.js";
import { openPlans, planWork } from "../compose/plans.js";
import { stallGuardOn } from "../compose/stall-guard.js";
import { processEnvironment } from "../config.js";
import type { Config } from "../config/settings.js";
import type { Engine } from "../engine/api.js";
import { createEngine } from "../engine/engine.js";
import { createHttpApp } from "../http/app.js";
import { createMetrics } from "../http/metrics.js";
import type { Ledger } from "../ledger/ledger.js";
import type { PlansHere } from "../plan/asked.js";
import { systemClock } from "../runtime/clock.js";
import { createLogger, type Logger } from "../runtime/logger.js";
import { createTaskRegistry, type RegisteredTask } from "../task/registry.js";
import { listenError, portOf, refuseOpenDoor, urlOf } from "./address.js";
import { announcementJson, announcementText } from "./announce.js";
import { Closers } from "./closers.js";
import { EXIT, type ExitCode } from "./exit-code.js";
import { watchProcess } from "./process-end.js";
import { reachLedger } from "./reach-ledger.js";
import { defaultTaskOf, tasksFrom } from "./task-files.js";
import type { Invocation } from "./verb.js";

export async function serve(invocation: Invocation): Promise<ExitCode> {
  const { args, config, options, json, terminal, exit } = invocation;
  refuseOpenDoor(config);
  const tasks = await tasksFrom("serve", args);
  const defaultTask = defaultTaskOf(config.defaultTask, tasks);
  const worker = options["worker"] !== false && config.asyncEnabled;
  const logger = createLogger(config.logLevel);
  const closers = new Closers(logger);
  const end = watchProcess(process, exit, logger);
  try {
    // A signal counts from the start: what is still being opened then is left as it is.
    const url = await Promise.race([
      start({ config, tasks, worker, logger, closers, stopped: end.stopped }),
      end.stopped.then(() => null),
    ]);
    if (url !== null) {
      const announcement = { url, config, tasks, defaultTask, worker };
      terminal.print(json ? announcementJson(announcement) : announcementText(announcement));
    }
    const { kind } = await end.stopped;
    return kind === "fault" ? EXIT.failed : EXIT.done;
  } finally {
    await closers.closeAll();
    end.restore();
  }
}

interface ServerParts {
  readonly config: Config;
  readonly tasks: readonly RegisteredTask[];
  readonly worker: boolean;
  readonly logger: Logger;
  /** What was opened, also when a later step fails. */
  readonly closers: Closers;
  /** The process is to stop. */
  readonly stopped: Promise<unknown>;
}

/** @returns the address, once requests are served; null where it is to stop before the ledger was reached. */
async function start(parts: ServerParts): Promise<string | null> {
  const { config, tasks, worker, logger, closers, stopped } = parts;
  const reach = { store: config.store, clock: systemClock, logger, stopped };
  const registry = createTaskRegistry(tasks);
  const metrics = createMetrics({ tasks: registry.names });
  let ledger: Ledger | null = null;
  let serving: Engine | null = null;
  let plans: PlansHere | null = null;
  // Before the server, so that it is closed after it.
  closers.add("ledger", async () => ledger?.close());
  const app = createHttpApp({
    tasks: registry,
    engine: () => serving,
    ...(config.plansOverHttp ? { plans: () => plans } : {}),
    settings: config,
    logger,
    metrics,
  });
  closers.add("http", () => closeApp(app));
  // The port is taken before the engine starts: where it can't be had, no job is begun.
  try {
    await app.listen({ host: config.host, port: config.port });
  } catch (error) {
    throw listenError(error, config);
  }
  ledger = await reachLedger(() => openLedger(config.store, { logger }), reach);
  if (ledger === null) return null;
  const ports = { ledger, tasks: registry, settings: config, logger };
  const env = processEnvironment();
  const work = worker && config.plans ? planWork({ ...ports, env }) : null;
  const engine = createEngine({
    ...ports,
    ...work?.parts,
    observer: metrics.observer,
    worker,
    stallGuard: stallGuardOn(config.store, logger),
  });
  closers.add("engine", () => engine.stop());
  await reachLedger(() => engine.start(), reach);
  if (work !== null) closers.add("plans", work.sweep());
  plans = openPlans({ ...ports, env, engine });
  serving = engine;
  return urlOf(config.host, portOf(app.server.address(), config.port));
}

/** Once running jobs have ended, answers take milliseconds; a client that still sends by then is cut off. */
const CLOSE_LIMIT_MS = 2_000;

function closeApp(app: ReturnType<typeof createHttpApp>): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancel = systemClock.timer(CLOSE_LIMIT_MS, () => {
      app.server.closeAllConnections();
      resolve();
    });
    app.close().then(resolve, reject).finally(cancel);
  });
}
