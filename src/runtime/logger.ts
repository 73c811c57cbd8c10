/** The log port, and pino behind it. One line of JSON per event; fields first, sentence last. */
import { pino } from "pino";

export type LogFields = Readonly<Record<string, unknown>>;

export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}

export const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** What is kept for a reader who is slower than the log; lines beyond it are dropped. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;

/**
 * Logs to standard error, which leaves standard output to what a command answers. Where it can't be
 * written, because its terminal was closed or its disk is full, each line tries again and none is a
 * fault: to log that fault would be the next one.
 */
export function createLogger(level: LogLevel): Logger {
  const bounds = { minLength: 0, maxLength: MAX_WAITING_BYTES };
  const stream = pino.destination({ dest: 2, sync: false, ...bounds });
  let isBroken = false;
  stream.on("error", () => (isBroken = true));
  stream.on("write", () => (isBroken = false));
  // At the process's end it would try for ever.
  const flushSync = stream.flushSync.bind(stream);
  stream.flushSync = () => {
    if (!isBroken) flushSync();
  };
  return pino(
    { level, base: { pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime },
    stream,
  );
}

export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};
