/**
 * One run of a task in the slot of its caller: a step of a plan, whose phase has a slot and does
 * nothing but wait meanwhile. It takes no slot of its own and stands in no line, so that a pool full
 * of plans can't wait for itself; a caller starts one at a time.
 *
 * The runner must be the engine's own. compose.ts makes one (`createTaskRunner`, with max_workers as
 * its threads) and gives it to both: to `createEngine`, and to the plan's tasks, which the engine
 * takes as `ownTasks`. A phase runs inline and holds a slot without a thread, which is then its
 * step's: there are never more threads than slots. The engine closes the runner when it stops, after
 * the phases, and so their steps, have gone. Where there is no engine (async is off), whoever made
 * the runner closes it.
 *
 * It settles when the handler has gone, was killed, or was given up where it runs inline; it never
 * rejects for what the task does. A wish to be tried again is not granted: a step has one attempt.
 */
import { cleanText, MAX_ERROR_CHARS } from "../job/limits.js";
import type { Clock } from "../runtime/clock.js";
import { issuesLine } from "../task/schema.js";
import type { TaskRegistry } from "../task/registry.js";
import { acceptInput, type InputDecision } from "./accepted-input.js";
import type { EngineSettings } from "./api.js";
import { Attempt, runLimitMs } from "./attempt.js";
import { GONE_MESSAGE, timeLimitMessage } from "./ending.js";
import type { RunOutcome, RunReports, Runner } from "./runner/runner.js";

export interface NestedRunPorts {
  /** The tasks that may be run so: those that users submit. */
  readonly tasks: TaskRegistry;
  readonly runner: Runner;
  readonly clock: Clock;
  readonly settings: Pick<EngineSettings, "cancelGraceMs" | "modelRunTimeoutMs">;
}

export interface NestedRunRequest {
  /** Its name. */
  readonly task: string;
  readonly input: unknown;
  readonly requestId: string | null;
  /** Of this run, ms; null: the task's own. The model_run_timeout setting, where there is one, bounds both. */
  readonly limitMs: number | null;
  /** The caller's own: when it is told to stop, so is the run. */
  readonly signal: AbortSignal;
  /** Hears of progress and logs. */
  readonly listener: RunReports;
}

export type NestedOutcome =
  | { readonly kind: "succeeded"; readonly resultJson: string }
  /** `ErrorType: message`, storable by every ledger and at most MAX_ERROR_CHARS. */
  | { readonly kind: "failed" | "timed_out"; readonly errorMessage: string }
  /** The caller was told to stop, whatever the handler did then. */
  | { readonly kind: "stopped" };

const STOPPED: NestedOutcome = { kind: "stopped" };

export async function nestedRun(
  ports: NestedRunPorts,
  request: NestedRunRequest,
): Promise<NestedOutcome> {
  const { signal, requestId, listener } = request;
  if (signal.aborted) return STOPPED;
  const accepted = await acceptInput(ports.tasks, request.task, request.input);
  if (isAborted(signal)) return STOPPED;
  if (accepted.kind !== "input") return refused(accepted);
  const { task, payloadJson } = accepted;
  const { runner, clock, settings } = ports;
  let ended: (outcome: RunOutcome) => void = () => undefined;
  const outcome = new Promise<RunOutcome>((done) => (ended = done));
  const attempt = new Attempt(
    { runner, clock, graceMs: settings.cancelGraceMs },
    { jobId: null, attempt: 1, task, payloadJson, requestId },
    {
      onProgress: (progressJson) => {
        listener.onProgress(progressJson);
      },
      onLog: (level, message, fields) => {
        listener.onLog(level, message, fields);
      },
      onOutcome: ended,
    },
    runLimitMs(request.limitMs, task, settings.modelRunTimeoutMs),
  );
  const stop = (): void => {
    attempt.stop("caller_stopped");
  };
  signal.addEventListener("abort", stop);
  try {
    return nestedOutcome(await outcome, attempt);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** A getter's answer may change while one waits. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}

function nestedOutcome(outcome: RunOutcome, attempt: Attempt): NestedOutcome {
  if (attempt.causes.has("caller_stopped")) return STOPPED;
  if (attempt.causes.has("time_limit"))
    return { kind: "timed_out", errorMessage: timeLimitMessage(attempt.limitMs) };
  switch (outcome.kind) {
    case "succeeded":
      return { kind: "succeeded", resultJson: outcome.resultJson };
    case "failed":
      return { kind: "failed", errorMessage: outcome.errorMessage };
    case "killed":
    case "abandoned":
      return { kind: "failed", errorMessage: GONE_MESSAGE };
    default:
      return outcome satisfies never;
  }
}

function refused(decision: Exclude<InputDecision, { readonly kind: "input" }>): NestedOutcome {
  switch (decision.kind) {
    case "unknown_task":
      return failed(
        `UnknownTask: this process has no task ${JSON.stringify(decision.task)}; it has ${decision.known.join(", ") || "none"}`,
      );
    case "invalid":
      return failed(`InvalidInput: ${issuesLine(decision.issues)}`);
    default:
      return decision satisfies never;
  }
}

function failed(message: string): NestedOutcome {
  return { kind: "failed", errorMessage: cleanText(message, MAX_ERROR_CHARS) };
}
