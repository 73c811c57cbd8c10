/** Starts a task thread and hands it its channel; thread-protocol.ts says what follows. */
import {
  MessageChannel,
  Worker,
  receiveMessageOnPort,
  type MessagePort,
  type ResourceLimits,
} from "node:worker_threads";
import type { FromThread, Greeting, ToThread } from "./thread-protocol.js";

export interface StartedThread {
  /** Keeps the process alive until it is unref'd; its channel doesn't. */
  readonly worker: Worker;
  readonly send: (message: ToThread) => void;
}

/**
 * @param onMessage called in order; none comes after the worker's `exit`, by which all were delivered.
 * @throws whatever the system says when it has no room for a thread.
 */
export function startThread(
  onMessage: (message: FromThread) => void,
  resourceLimits: ResourceLimits = {},
): StartedThread {
  const worker = new Worker(new URL("./task-thread.js", import.meta.url), {
    name: "jobtable task",
    resourceLimits,
    ...(isEvaluated() && { execArgv: [] }),
    // Else Node copies it to the process's own. Nothing comes: the thread logs what is printed. Nor
    // may these streams be read, which keeps the process alive, an unref'd thread or not.
    stdout: true,
    stderr: true,
  });
  const { port1: port, port2 } = new MessageChannel();
  port.on("message", onMessage);
  port.unref();
  // The exit may overtake the last messages; whoever listens to it after this has had them all.
  worker.once("exit", () => {
    for (let last = receive(port); last !== undefined; last = receive(port))
      onMessage(last.message);
    port.close();
  });
  worker.postMessage({ port: port2 } satisfies Greeting, [port2]);
  return {
    worker,
    send: (message) => {
      port.postMessage(message);
    },
  };
}

/** A program given as `node --input-type=module --eval ...`: a thread that inherits these flags does not start. */
function isEvaluated(): boolean {
  return process.execArgv.some((flag) => flag.startsWith("--input-type"));
}

function receive(port: MessagePort): { readonly message: FromThread } | undefined {
  return receiveMessageOnPort(port);
}
