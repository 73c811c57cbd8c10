/** The store for a plan command, and a worker of one slot for a phase that runs in place. */
import { openPlans, planWork } from "../compose/plans.js";
import { processEnvironment } from "../config.js";
import { createEngine } from "../engine/engine.js";
import { formatJobId } from "../job/id.js";
import type { Job, Phase } from "../job/job.js";
import { PLAN_TASKS } from "../job/payload.js";
import type { Ledger } from "../ledger/ledger.js";
import type { PlanRecord } from "../ledger/plan-records.js";
import type { PlansHere } from "../plan/asked.js";
import type { Place } from "../plan/plans.js";
import type { Logger } from "../runtime/logger.js";
import { createTaskRegistry, type RegisteredTask } from "../task/registry.js";
import { EXIT, type ExitCode } from "./exit-code.js";
import { PhaseOnTerminal, printEnd } from "./plan-follow.js";
import { watchProcess } from "./process-end.js";
import { quietLogger, refuseMemory } from "./session.js";
import { openLedger } from "../compose.js";
import type { Invocation } from "./verb.js";

export interface PlanSession extends PlansHere {
  readonly invocation: Invocation;
  readonly ledger: Ledger;
  readonly logger: Logger;
}

export async function withPlans<Answer>(
  invocation: Invocation,
  { create }: { readonly create: boolean },
  use: (session: PlanSession) => Promise<Answer>,
): Promise<Answer> {
  const { config } = invocation;
  refuseMemory(config);
  const logger = quietLogger(invocation);
  const env = processEnvironment();
  const ledger = await openLedger(config.store, { logger, create });
  try {
    return await use({
      invocation,
      ledger,
      ...openPlans({ ledger, settings: config, env }),
      logger,
    });
  } finally {
    await ledger.close();
  }
}

/** Runs a phase in this process, as a job that no other one claims; a signal cancels it. */
export async function inPlace(
  { invocation, ledger, plans, host, logger }: PlanSession,
  phase: Phase,
  start: (place: Place) => Promise<{ readonly plan: PlanRecord; readonly job: Job } | null>,
): Promise<ExitCode> {
  const { config, exit } = invocation;
  const jobId = plans.newId();
  const tasks = createTaskRegistry(await tasksOf(invocation));
  const names = {
    execute: `${PLAN_TASKS.execute}:${jobId}`,
    apply: `${PLAN_TASKS.apply}:${jobId}`,
  };
  const settings = { ...config, maxWorkers: 1 };
  const watcher = new PhaseOnTerminal(invocation);
  const { env } = host;
  const work = planWork({ ledger, tasks, settings, logger, env, names, watcher });
  const engine = createEngine({
    ledger,
    tasks: createTaskRegistry([]),
    ...work.parts,
    settings,
    logger,
    worker: true,
  });
  const end = watchProcess(process, exit, logger);
  try {
    await engine.start();
    const started = await start({ jobId, task: names[phase] });
    if (started === null) return EXIT.failed;
    watcher.began(formatJobId(jobId), started.plan, phase);
    void end.stopped.then(() => engine.cancel(jobId));
    await engine.wait(jobId, { timeoutMs: Infinity, until: "end" });
    return printEnd(invocation, await plans.show(started.plan, { jobId }), phase);
  } finally {
    await engine.stop();
    end.restore();
  }
}

async function tasksOf({ options }: Invocation): Promise<RegisteredTask[]> {
  const paths = options["tasks"];
  if (!Array.isArray(paths)) return [];
  const { loadTasks } = await import("../task/load-tasks.js");
  return loadTasks(paths.map(String));
}
