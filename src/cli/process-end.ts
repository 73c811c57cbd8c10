/**
 * What makes a serving process stop: SIGINT, SIGTERM, SIGHUP, or a fault that nobody caught. The first
 * one asks for an orderly stop; a second signal ends the process at once with the shell's code for it,
 * unless it is SIGHUP: a terminal that is closed may send it twice, from the shell and from the kernel.
 * The handlers go with `restore`, and the process is then as it was.
 */
import type { EventEmitter } from "node:events";
import { constants } from "node:os";
import type { Logger } from "../runtime/logger.js";

export type StopReason =
  | { readonly kind: "signal"; readonly signal: NodeJS.Signals }
  /** Something in this process is broken; it was logged. */
  | { readonly kind: "fault" };

export interface ProcessEnd {
  /** Never rejects. */
  readonly stopped: Promise<StopReason>;
  restore(): void;
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const FAULTS = ["uncaughtException", "unhandledRejection"] as const;

/** @param exit ends the process at once. */
export function watchProcess(
  process: Pick<EventEmitter, "on" | "off">,
  exit: (code: number) => void,
  logger: Logger,
): ProcessEnd {
  let resolve: (reason: StopReason) => void = () => undefined;
  const stopped = new Promise<StopReason>((settle) => (resolve = settle));
  let signalled = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (signalled) {
      if (signal !== "SIGHUP") exit(128 + constants.signals[signal]);
      return;
    }
    signalled = true;
    logger.info({ signal }, "stopping; the same signal again ends at once");
    resolve({ kind: "signal", signal });
  };
  const onFault = (error: unknown): void => {
    logger.error({ err: error }, "uncaught fault: stopping");
    resolve({ kind: "fault" });
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  for (const fault of FAULTS) process.on(fault, onFault);
  return {
    stopped,
    restore() {
      for (const signal of SIGNALS) process.off(signal, onSignal);
      for (const fault of FAULTS) process.off(fault, onFault);
    },
  };
}
