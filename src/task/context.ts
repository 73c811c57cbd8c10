/** What a handler gets beside its input. */
import type { Reports } from "./reports.js";
import type { Stop } from "./stop.js";
import type { TaskContext, TaskLog } from "./task.js";

/** Which run it is, as its handler sees it. */
export interface RunIdentity {
  /** 26-character ULID; null for a synchronous request. */
  readonly jobId: string | null;
  readonly attempt: number;
  readonly requestId: string | null;
}

export function contextOf(identity: RunIdentity, stop: Stop, reports: Reports): TaskContext {
  return new Context(identity, stop, reports);
}

/** By a name of its own rather than privately: a proxy of a context, and what inherits from one, have it too. */
const STOP = Symbol("stop");

class Context implements TaskContext {
  declare readonly signal: AbortSignal;
  readonly jobId: string | null;
  readonly requestId: string | null;
  readonly attempt: number;
  readonly log: TaskLog;
  readonly progress: (value: unknown) => void;
  readonly [STOP]: Stop;

  constructor({ jobId, requestId, attempt }: RunIdentity, stop: Stop, reports: Reports) {
    this.jobId = jobId === null ? null : `job_${jobId}`;
    this.requestId = requestId;
    this.attempt = attempt;
    this.log = {
      debug: (message, fields) => {
        reports.log("debug", message, fields);
      },
      info: (message, fields) => {
        reports.log("info", message, fields);
      },
      warn: (message, fields) => {
        reports.log("warn", message, fields);
      },
      error: (message, fields) => {
        reports.log("error", message, fields);
      },
    };
    this.progress = (value) => {
      reports.progress(value);
    };
    this[STOP] = stop;
    Object.defineProperty(this, "signal", SIGNAL);
  }
}

/**
 * A property of each context, as the others are, so that handlers may take it out or spread them; one
 * getter for all, since a getter for each costs ten times as much.
 */
const SIGNAL: PropertyDescriptor & ThisType<Context> = {
  enumerable: true,
  get() {
    return this[STOP].signal;
  },
};
