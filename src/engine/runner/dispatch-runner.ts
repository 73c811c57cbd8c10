/** One runner for all tasks: each goes where its `isolation` says. */
import type { Runner } from "./runner.js";
import type { Isolation } from "../../task/task.js";

export function dispatchRunner(runners: Readonly<Record<Isolation, Runner>>): Runner {
  return {
    start: (request, listener) => runners[request.task.isolation].start(request, listener),
    async close() {
      await Promise.all([runners.inline.close(), runners.thread.close()]);
    },
  };
}
