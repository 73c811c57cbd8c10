/**
 * The main thread's end of the line to the database thread. Calls wait in one FIFO; what is waiting
 * goes out together, as one message that becomes one commit, so that the commit's price is shared by
 * all who wait. pace.ts says when; no timer is involved.
 *
 * Should the thread die, every call under way rejects (it may or may not have been recorded), and a
 * new one is started, to which those that wait go; whoever listens is told of the gap. While none can be
 * started, calls reject with the reason, and at most once a second another start is tried.
 */
import { Worker } from "node:worker_threads";
import { LedgerError } from "../../job/errors.js";
import type { Clock } from "../../runtime/clock.js";
import type { Logger } from "../../runtime/logger.js";
import { busyLoop } from "../../runtime/busy-loop.js";
import { toError } from "./failures.js";
import { Pace, type PacePorts } from "./pace.js";
import { packBatch, unpackOutcomes } from "./packing.js";
import type {
  LedgerThreadData,
  Answers,
  FromThread,
  Operation,
  OperationOf,
  ToThread,
  Verb,
} from "./protocol.js";

/** Enough to share a commit among hundreds, and few enough that one transaction stays short. */
const LARGEST_MESSAGE = 1_024;
const RESTART_PAUSE_MS = 1_000;

export interface ThreadLinkOptions extends Pick<LedgerThreadData, "path" | "create"> {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly onForeignChange: (change: { readonly look: boolean; readonly work: boolean }) => void;
  /** Changes may have been missed. */
  readonly onGap: () => void;
  readonly startThread?: (data: LedgerThreadData) => Worker;
  /** Default: measured. */
  readonly isBusy?: PacePorts["isBusy"];
}

interface Call {
  readonly operation: Operation;
  /** With the ledger's time of the message. */
  readonly answered: (answer: Answers[Verb], nowMs: number) => void;
  readonly failed: (error: unknown) => void;
}

interface Message {
  readonly nowMs: number;
  readonly calls: readonly Call[];
}

export function startLedgerThread(workerData: LedgerThreadData): Worker {
  return new Worker(new URL("./ledger-thread.js", import.meta.url), { workerData });
}

export class ThreadLink {
  readonly #options: ThreadLinkOptions;
  readonly #pace: Pace;
  #thread: Worker | undefined;
  /** Settles when the thread that is being started is open, or could not open. */
  #starting: Promise<void> | undefined;
  #lastStartMs = -Infinity;
  /** Why the last start failed. */
  #refusal: Error | undefined;
  /** Whether the present thread has answered anything. */
  #answered = false;
  #waiting: Call[] = [];
  #underWay: Message[] = [];
  #closing: Promise<void> | undefined;

  constructor(options: ThreadLinkOptions) {
    this.#options = options;
    this.#pace = new Pace({
      isBusy: options.isBusy ?? busyLoop(options.clock),
      underWay: () => this.#underWay.length,
      flush: () => {
        this.#flush();
      },
    });
  }

  /** @throws LedgerError when the database can't be opened. */
  async open(): Promise<void> {
    await this.#start();
  }

  /**
   * @param finish turns the answer into what the caller wants. It runs as the answer arrives, before
   *   anyone learns of it; `nowMs` is the time at which the operation was done.
   */
  call<V extends Verb, T>(
    operation: OperationOf<V>,
    finish: (answer: Answers[V], nowMs: number) => T,
  ): Promise<T> {
    if (this.#closing !== undefined) return Promise.reject(this.#closedError());
    return new Promise((resolve, reject) => {
      this.#waiting.push({
        operation,
        answered: (answer, nowMs) => {
          resolve(finish(answer as Answers[V], nowMs));
        },
        failed: reject,
      });
      this.#pace.waits();
    });
  }

  /** Idempotent. Waits for the calls under way, then ends the thread. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    await this.#starting?.catch(() => undefined);
    const thread = this.#thread;
    if (thread === undefined) {
      this.#failAll(this.#closedError());
      return;
    }
    const ended = new Promise<void>((resolve) => {
      thread.once("exit", () => {
        resolve();
      });
    });
    while (this.#waiting.length > 0) this.#send(thread, this.#waiting.splice(0, LARGEST_MESSAGE));
    this.#post(thread, { kind: "close" });
    await ended;
  }

  #flush(): void {
    if (this.#thread === undefined) {
      if (this.#waiting.length > 0) this.#startAgain();
      return;
    }
    while (this.#waiting.length > 0 && this.#pace.allows())
      this.#send(this.#thread, this.#waiting.splice(0, LARGEST_MESSAGE));
  }

  #send(thread: Worker, calls: readonly Call[]): void {
    const nowMs = this.#options.clock.nowMs();
    this.#underWay.push({ nowMs, calls });
    try {
      this.#post(
        thread,
        packBatch(
          nowMs,
          calls.map((call) => call.operation),
        ),
      );
    } catch (error) {
      // One of them holds a value that can't be copied to a thread: a bug of that caller alone.
      this.#underWay.pop();
      if (calls.length > 1) for (const call of calls) this.#send(thread, [call]);
      else for (const call of calls) call.failed(error);
    }
  }

  #post(thread: Worker, message: ToThread): void {
    thread.postMessage(message);
  }

  #received(message: FromThread): void {
    switch (message.kind) {
      case "outcomes": {
        const done = this.#underWay.shift();
        if (done === undefined) throw new Error("the ledger's thread answered what nobody asked");
        this.#answered = true;
        this.#pace.answered();
        const outcomes = unpackOutcomes(message);
        for (const [index, call] of done.calls.entries()) {
          const outcome = outcomes[index];
          if (outcome === undefined)
            call.failed(new Error("the ledger's thread left out an answer"));
          else if (outcome.failed) call.failed(toError(outcome));
          else finish(call, outcome.answer, done.nowMs);
        }
        return;
      }
      case "foreign":
        this.#options.onForeignChange(message);
        return;
      case "opened":
      case "refused":
      case "closed":
        return;
      default:
        message satisfies never;
    }
  }

  /** Resolves when the database is open and calls can go out. */
  #start(): Promise<void> {
    const { path, create, clock, startThread = startLedgerThread } = this.#options;
    this.#lastStartMs = clock.monotonicMs();
    const started = new Promise<void>((resolve, reject) => {
      const thread = startThread({ path, create, nowMs: clock.nowMs() });
      let fault: Error = new LedgerError(
        "ledger_unavailable",
        `the thread of the ledger ${path} ended by itself: try again`,
      );
      thread.on("message", (message: FromThread) => {
        if (message.kind === "opened") {
          this.#opened(thread);
          resolve();
        } else if (message.kind === "refused") fault = toError(message.failure);
        else this.#received(message);
      });
      thread.on("error", (error) => {
        fault = new LedgerError(
          "ledger_unavailable",
          `the thread of the ledger ${path} failed: ${error.message}`,
          { cause: error },
        );
      });
      thread.once("exit", () => {
        reject(fault);
        this.#ended(thread, fault);
      });
    });
    return (this.#starting = started);
  }

  #opened(thread: Worker): void {
    this.#thread = thread;
    this.#starting = undefined;
    this.#refusal = undefined;
    this.#answered = false;
    this.#flush();
  }

  #ended(thread: Worker, fault: Error): void {
    const wasOpen = this.#thread === thread;
    this.#thread = undefined;
    this.#starting = undefined;
    if (this.#closing !== undefined) {
      this.#failAll(this.#closedError());
      return;
    }
    if (!wasOpen) {
      this.#refusal = fault;
      this.#failAll(fault);
      return;
    }
    this.#failUnderWay(fault);
    // One that died before it did anything would only die again: then the next call tries. Calls that
    // wait do so too; each death takes some of them along, so that this ends.
    if (this.#answered || this.#waiting.length > 0) this.#startAgain();
  }

  #startAgain(): void {
    if (this.#starting !== undefined) return;
    const { clock, logger, onGap, path } = this.#options;
    if (this.#refusal !== undefined && clock.monotonicMs() - this.#lastStartMs < RESTART_PAUSE_MS) {
      this.#failAll(this.#refusal);
      return;
    }
    logger.warn({ path }, "starting the ledger's thread again");
    this.#start().then(onGap, (error: unknown) => {
      logger.error({ path, error: String(error) }, "the ledger's thread could not be started");
    });
  }

  #failAll(error: Error): void {
    this.#failUnderWay(error);
    for (const call of this.#waiting.splice(0)) call.failed(error);
  }

  #failUnderWay(error: Error): void {
    for (const { calls } of this.#underWay.splice(0)) for (const call of calls) call.failed(error);
  }

  #closedError(): LedgerError {
    return new LedgerError(
      "ledger_closed",
      `the ledger ${this.#options.path} is closed: open a new one`,
    );
  }
}

function finish({ answered, failed }: Call, answer: Answers[Verb], nowMs: number): void {
  try {
    answered(answer, nowMs);
  } catch (error) {
    failed(error);
  }
}
