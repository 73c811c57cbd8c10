import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { silentLogger } from "../runtime/logger.js";
import { watchProcess } from "./process-end.js";

function watched(): {
  process: EventEmitter;
  exits: number[];
  end: ReturnType<typeof watchProcess>;
} {
  const process = new EventEmitter();
  const exits: number[] = [];
  const end = watchProcess(process, (code) => exits.push(code), silentLogger);
  return { process, exits, end };
}

test.each([
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)("%s asks for an orderly stop, twice ends with %d", async (signal, code) => {
  const { process, exits, end } = watched();
  process.emit(signal, signal);
  expect(await end.stopped).toEqual({ kind: "signal", signal });
  expect(exits).toEqual([]);
  process.emit(signal, signal);
  expect(exits).toEqual([code]);
});

test("SIGHUP asks for one too, and again for nothing more", async () => {
  const { process, exits, end } = watched();
  process.emit("SIGHUP", "SIGHUP");
  expect(await end.stopped).toEqual({ kind: "signal", signal: "SIGHUP" });
  process.emit("SIGHUP", "SIGHUP");
  expect(exits).toEqual([]);
  process.emit("SIGTERM", "SIGTERM");
  expect(exits).toEqual([143]);
});

test("a fault that nobody caught asks for a stop; a signal after it does not end at once", async () => {
  const { process, exits, end } = watched();
  process.emit("unhandledRejection", new Error("stray"));
  expect(await end.stopped).toEqual({ kind: "fault" });
  process.emit("SIGTERM", "SIGTERM");
  process.emit("uncaughtException", new Error("another"));
  expect(exits).toEqual([]);
});

test("restore takes every handler away", () => {
  const { process, end } = watched();
  end.restore();
  expect(process.eventNames()).toEqual([]);
});
