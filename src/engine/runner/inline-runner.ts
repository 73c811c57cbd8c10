/**
 * Runs tasks on this process's own event loop: for handlers that wait more than they compute, and
 * for functions given to the library, which no thread could load.
 *
 * Nothing can end such a run from outside. `kill` gives it up: its outcome is `abandoned`, its
 * reports and its late end are dropped, while its code may go on and holds what it holds. The
 * handler's own promise is always looked after, however late it rejects. A promise that a handler
 * leaves to nobody is the process's, as for any other code in it: Node ends the process for it,
 * unless the program listens to `unhandledRejection`. (Telling such promises apart would need
 * asynchronous context tracking in the process that serves, which every request would pay for.)
 * Handlers that can't be trusted that far belong in threads.
 */
import { execute } from "../../task/execute.js";
import { Reports } from "../../task/reports.js";
import { Stop } from "../../task/stop.js";
import type { Clock } from "../../runtime/clock.js";
import type { Run, RunListener, RunOutcome, RunRequest, Runner } from "./runner.js";

export interface InlineRunnerOptions {
  readonly clock: Clock;
}

export function createInlineRunner({ clock }: InlineRunnerOptions): Runner {
  const running = new Set<Promise<RunOutcome>>();
  return {
    start(request, listener) {
      const run = startInline(request, listener, clock);
      running.add(run.outcome);
      void run.outcome.then(() => running.delete(run.outcome));
      return run;
    },
    async close() {
      while (running.size > 0) await Promise.all(running);
    },
  };
}

function startInline(request: RunRequest, listener: RunListener, clock: Clock): Run {
  const stop = new Stop();
  const reports = new Reports(clock, {
    progress: (json) => {
      listener.onProgress(json);
    },
    log: (level, message, fieldsJson) => {
      listener.onLog(level, message, JSON.parse(fieldsJson) as Record<string, unknown>);
    },
  });
  let settle: (outcome: RunOutcome) => void = () => undefined;
  const outcome = new Promise<RunOutcome>((done) => (settle = done));
  const { task, payloadJson, jobId, attempt, requestId } = request;
  // In a microtask, so that a handler never runs inside its starter's call.
  queueMicrotask(() => {
    void execute({
      definition: task.definition,
      payloadJson,
      jobId,
      attempt,
      requestId,
      stop,
      reports,
    }).then(settle);
  });
  return {
    outcome,
    abort(reason) {
      stop.ask(reason);
    },
    kill() {
      reports.mute();
      settle({ kind: "abandoned" });
      stop.ask("the run was given up");
    },
  };
}
