/**
 * The protocol between the process and its task threads.
 *
 * A thread is started from task-thread.ts, and its first message (on `parentPort`) hands it one end
 * of a channel of its own. All else goes over that channel, which a user's code can't reach, so
 * nothing it posts or closes can be taken for ours. One run at a time; `run` numbers count up per
 * thread, and what carries the number of an earlier run is ignored by either side.
 *
 *   process -> thread
 *     load    import a task file and check its options; answered by `loaded`
 *     run     run a task of a file, which is imported first where this thread hasn't yet
 *     abort   set ctx.signal of the run that is under way
 *   thread -> process
 *     loaded    `fault`: null, or one line
 *     started   the run has reached the thread; without it, a thread's exit is no fault of the run
 *     progress  coalesced JSON text, at most MAX_PROGRESS_BYTES
 *     log       cut and limited in rate; fields as JSON text
 *     ended     the run's end. `spent`: the thread can't be trusted with another run (its import
 *               failed, or something in it was thrown past its handler): terminate it
 *     stray     something that an earlier run left behind threw: `spent` without an end
 *
 * Texts cross as texts: the payload is parsed, and the result encoded, in the thread. An end of the
 * thread itself (process.exit, out of memory) is not a message but the worker's exit.
 */
import type { MessagePort } from "node:worker_threads";
import type { RunIdentity } from "./context.js";
import type { TaskEnding } from "./execute.js";
import type { ReportLevel } from "./reports.js";

/** The first message to a new thread. */
export interface Greeting {
  readonly port: MessagePort;
}

export type ToThread =
  | { readonly type: "load"; readonly file: string; readonly defaultName: string }
  | {
      readonly type: "run";
      readonly run: number;
      readonly file: string;
      readonly taskName: string;
      readonly payloadJson: string;
      readonly identity: RunIdentity;
    }
  | { readonly type: "abort"; readonly run: number; readonly reason: string };

export type FromThread =
  | { readonly type: "loaded"; readonly file: string; readonly fault: string | null }
  | { readonly type: "started"; readonly run: number }
  | { readonly type: "progress"; readonly run: number; readonly json: string }
  | {
      readonly type: "log";
      readonly run: number;
      readonly level: ReportLevel;
      readonly message: string;
      readonly fieldsJson: string;
    }
  | {
      readonly type: "ended";
      readonly run: number;
      readonly ending: TaskEnding;
      readonly spent: boolean;
    }
  | { readonly type: "stray"; readonly errorMessage: string };
