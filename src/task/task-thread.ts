/**
 * The entry of a task thread; thread-protocol.ts says what it exchanges with the process.
 *
 * Whatever is thrown past a handler (a timer's callback, a promise that nobody awaits) is charged to
 * the run that started it, also when another one is under way by then: that one goes on, and the
 * thread is spent afterwards. What a handler prints goes to its run's log, since standard output
 * belongs to what the command answers.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { parentPort, receiveMessageOnPort, type MessagePort } from "node:worker_threads";
import { systemClock } from "../runtime/clock.js";
import { execute, type TaskEnding } from "./execute.js";
import { describe, failed } from "./failure.js";
import { loadDefinition } from "./load-definition.js";
import { Reports, type ReportLevel } from "./reports.js";
import { Stop } from "./stop.js";
import type { TaskOptions } from "./task.js";
import type { FromThread, Greeting, ToThread } from "./thread-protocol.js";

interface ActiveRun {
  readonly run: number;
  readonly stop: Stop;
  readonly reports: Reports;
}

class TaskThread {
  readonly #port: MessagePort;
  readonly #owner = new AsyncLocalStorage<ActiveRun>();
  readonly #definitions = new Map<string, TaskOptions>();
  #active: ActiveRun | null = null;

  constructor(port: MessagePort) {
    this.#port = port;
    redirectOutput((level, text) => {
      (this.#owner.getStore() ?? this.#active)?.reports.log(level, text);
    });
    const thrown = (error: unknown): void => {
      this.#thrownPastHandler(error);
    };
    process.on("uncaughtException", thrown);
    process.on("unhandledRejection", thrown);
    port.on("message", (message: ToThread) => {
      this.#receive(message);
    });
  }

  #receive(message: ToThread): void {
    switch (message.type) {
      case "load":
        void this.#load(message.file, message.defaultName);
        return;
      case "run":
        void this.#run(message);
        return;
      case "abort":
        if (this.#active?.run === message.run) this.#active.stop.ask(message.reason);
        return;
      default:
        message satisfies never;
    }
  }

  async #load(file: string, defaultName: string): Promise<void> {
    let fault: string | null = null;
    try {
      await loadDefinition(file, defaultName);
    } catch (error) {
      fault = error instanceof Error ? error.message : describe(error);
    }
    this.#send({ type: "loaded", file, fault });
  }

  async #run(message: ToThread & { readonly type: "run" }): Promise<void> {
    const { run } = message;
    const reports = new Reports(systemClock, {
      progress: (json) => {
        this.#send({ type: "progress", run, json });
      },
      log: (level, text, fieldsJson) => {
        this.#send({ type: "log", run, level, message: text, fieldsJson });
      },
    });
    const stop = new Stop();
    this.#lookWhenAsked(stop.signal);
    const active = { run, stop, reports };
    this.#active = active;
    this.#send({ type: "started", run });
    const { ending, spent } = await this.#owner.run(active, () => this.#carryOut(message, active));
    if (this.#active === active) this.#end(ending, spent);
  }

  async #carryOut(
    message: ToThread & { readonly type: "run" },
    { stop, reports }: ActiveRun,
  ): Promise<{ readonly ending: TaskEnding; readonly spent: boolean }> {
    let definition: TaskOptions;
    try {
      definition = await this.#definitionOf(message.file, message.taskName);
    } catch (error) {
      // The import's failure is cached with the module: another try needs another thread.
      const why = error instanceof Error ? error.message : describe(error);
      return { ending: failed("TaskLoadError", why), spent: true };
    }
    const { payloadJson, identity } = message;
    const ending = await execute({ ...identity, definition, payloadJson, stop, reports });
    return { ending, spent: false };
  }

  async #definitionOf(file: string, taskName: string): Promise<TaskOptions> {
    const known = this.#definitions.get(file);
    if (known !== undefined) return known;
    const { definition } = await loadDefinition(file, taskName);
    this.#definitions.set(file, definition);
    return definition;
  }

  #end(ending: TaskEnding, spent: boolean): void {
    if (this.#active === null) return;
    const { run, reports } = this.#active;
    this.#active = null;
    reports.end();
    this.#send({ type: "ended", run, ending, spent });
  }

  #thrownPastHandler(error: unknown): void {
    const owner = this.#owner.getStore();
    if (this.#active !== null && (owner === undefined || owner === this.#active))
      this.#end(failed("ThreadExit", `nobody caught ${describe(error)}`), true);
    else this.#send({ type: "stray", errorMessage: describe(error) });
  }

  /**
   * A handler that spins lets no message in, so its signal looks for one when it is asked:
   * `while (!signal.aborted)` ends.
   */
  #lookWhenAsked(signal: AbortSignal): void {
    const isAborted = (): boolean => Reflect.get(AbortSignal.prototype, "aborted", signal);
    const look = (): boolean => {
      if (isAborted()) return true;
      for (let next = this.#next(); next !== undefined; next = this.#next()) this.#receive(next);
      return isAborted();
    };
    Object.defineProperties(signal, {
      aborted: { get: look },
      throwIfAborted: {
        value: () => {
          if (look()) throw signal.reason;
        },
      },
    });
  }

  #next(): ToThread | undefined {
    return (receiveMessageOnPort(this.#port) as { message: ToThread } | undefined)?.message;
  }

  #send(message: FromThread): void {
    this.#port.postMessage(message);
  }
}

/** Whatever is written to standard output or error, by `console` too, goes to `log` instead. */
function redirectOutput(log: (level: ReportLevel, text: string) => void): void {
  for (const [stream, level] of [
    [process.stdout, "info"],
    [process.stderr, "warn"],
  ] as const) {
    const write = (
      chunk: string | Uint8Array,
      encoding?: BufferEncoding | WriteCallback,
      written?: WriteCallback,
    ): boolean => {
      const text = typeof chunk === "string" ? chunk : Buffer.from(chunk).toString();
      log(level, text.replace(/\n$/, ""));
      const done = typeof encoding === "function" ? encoding : written;
      if (done !== undefined) process.nextTick(done);
      return true;
    };
    stream.write = write;
  }
}

type WriteCallback = (error?: Error | null) => void;

parentPort?.once("message", ({ port }: Greeting) => {
  new TaskThread(port);
});
