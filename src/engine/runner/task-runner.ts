/** The runner of a process: threads for task files, the process itself for functions. */
import type { Clock } from "../../runtime/clock.js";
import type { Logger } from "../../runtime/logger.js";
import { dispatchRunner } from "./dispatch-runner.js";
import { createInlineRunner } from "./inline-runner.js";
import type { Runner } from "./runner.js";
import { createThreadRunner } from "./thread-runner.js";

export interface TaskRunnerPorts {
  /** How many threads to keep: the slots of the pool that starts runs here. */
  readonly maxThreads: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

export function createTaskRunner({ maxThreads, clock, logger }: TaskRunnerPorts): Runner {
  return dispatchRunner({
    inline: createInlineRunner({ clock }),
    thread: createThreadRunner({ maxThreads, logger }),
  });
}
