/** Puts plans and the engine together: the tasks that run phases, and the runner that both share. */
import type { Engine, EngineSettings } from "../engine/api.js";
import { createTaskRunner } from "../engine/runner/task-runner.js";
import type { Runner } from "../engine/runner/runner.js";
import type { Phase } from "../job/job.js";
import type { Ledger } from "../ledger/ledger.js";
import type { PlansHere } from "../plan/asked.js";
import type { Environment } from "../plan/git/environment.js";
import { planTasks } from "../plan/own-tasks.js";
import { Plans } from "../plan/plans.js";
import type { StepsListener } from "../plan/steps/api.js";
import { sweepPlans } from "../plan/sweep.js";
import { systemClock, type Clock } from "../runtime/clock.js";
import type { Logger } from "../runtime/logger.js";
import { systemProcesses } from "../runtime/process-identity.js";
import { idSource, systemRandom } from "../runtime/random.js";
import type { RegisteredTask, TaskRegistry } from "../task/registry.js";

export interface PlanWorkOptions {
  readonly ledger: Ledger;
  /** For steps that run a task. */
  readonly tasks: TaskRegistry;
  readonly settings: EngineSettings;
  readonly logger: Logger;
  /** What steps find in their environment. */
  readonly env: Environment;
  readonly clock?: Clock;
  /** Default: those that any worker for plans claims. */
  readonly names?: Readonly<Record<Phase, string>>;
  /** Sees the steps as they go. */
  readonly watcher?: StepsListener;
}

export interface PlanWork {
  /** For `createEngine`. */
  readonly parts: { readonly ownTasks: readonly RegisteredTask[]; readonly runner: Runner };
  /**
   * Deals with what dead processes left behind; for when the engine has started. The answer ends that,
   * and resolves when it has ended. Never rejects.
   */
  sweep(): () => Promise<void>;
}

export function planWork(options: PlanWorkOptions): PlanWork {
  const { ledger, tasks, settings, logger, env, clock = systemClock, names, watcher } = options;
  const runner = createTaskRunner({ maxThreads: settings.maxWorkers, clock, logger });
  const ports = { ledger, env, clock, logger, processes: systemProcesses() };
  const nested = { tasks, runner, clock, settings };
  return {
    parts: { ownTasks: planTasks({ ...ports, nested, watcher }, names), runner },
    sweep() {
      const controller = new AbortController();
      const sweeping = sweepPlans(ports, controller.signal);
      return () => {
        controller.abort();
        return sweeping;
      };
    },
  };
}

export interface OpenPlansOptions {
  readonly ledger: Ledger;
  readonly settings: Pick<EngineSettings, "asyncMaxQueue">;
  /** For git. */
  readonly env: Environment;
  /** Records the jobs; left out: the ledger alone, for a process that ends soon. */
  readonly engine?: Pick<Engine, "record">;
  readonly clock?: Clock;
}

/** Plans as their users meet them, on a ledger. */
export function openPlans(options: OpenPlansOptions): PlansHere {
  const { ledger, settings, env, engine, clock = systemClock } = options;
  const newId = idSource(clock, systemRandom());
  const processes = systemProcesses();
  const ports = { ledger, newId, processes, asyncMaxQueue: settings.asyncMaxQueue };
  return {
    plans: new Plans(engine === undefined ? ports : { ...ports, engine }),
    host: { env, clock },
  };
}
