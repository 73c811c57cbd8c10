/** A run whose outcome can be waited for. */
import type {
  Run,
  RunOutcome,
  RunReports,
  RunRequest,
  Runner,
} from "../src/engine/runner/runner.js";

export interface StartedRun extends Run {
  readonly outcome: Promise<RunOutcome>;
}

export const SILENT: RunReports = { onProgress: () => undefined, onLog: () => undefined };

export function startRun(
  runner: Runner,
  request: RunRequest,
  reports: RunReports = SILENT,
): StartedRun {
  let ended: (outcome: RunOutcome) => void = () => undefined;
  const outcome = new Promise<RunOutcome>((done) => (ended = done));
  const run = runner.start(request, {
    onProgress: (json) => {
      reports.onProgress(json);
    },
    onLog: (level, message, fields) => {
      reports.onLog(level, message, fields);
    },
    onOutcome: (one) => {
      ended(one);
    },
  });
  return {
    outcome,
    abort: (reason) => {
      run.abort(reason);
    },
    kill: () => {
      run.kill();
    },
  };
}
