/**
 * The entry of the stall guard's thread. It looks at the shared number; where that stands still for a
 * third of `worker_timeout`, it opens the ledger and beats for the worker, again each third, until the
 * number moves (then it closes the ledger) or `job_timeout` has passed. A beat that fails is tried
 * again at the next look. Time for which the whole process was stopped is left out (turn-watch.ts).
 * Its end is the message `stop`, or the end of the process.
 *
 * Where there is no time for that, the ledger is opened ahead, and stays open.
 */
import { parentPort, workerData, type MessagePort } from "node:worker_threads";
import type * as Compose from "../compose.js";
import type { Ledger, WorkerBeat } from "../ledger/ledger.js";
import { systemClock } from "../runtime/clock.js";
import type * as Logging from "../runtime/logger.js";
import {
  opensAhead,
  type FromGuard,
  type GuardData,
  type ToGuard,
} from "./stall-guard-protocol.js";
import { TurnWatch } from "./turn-watch.js";

const BEATS_PER_TIMEOUT = 3;

type LedgerCode = [typeof Compose, typeof Logging];

class StallGuardThread {
  readonly #data: GuardData;
  readonly #port: MessagePort;
  readonly #beatEveryMs: number;
  readonly #isOpenAhead: boolean;
  #row: WorkerBeat | null = null;
  #ledger: Ledger | null = null;
  #code: Promise<LedgerCode> | null = null;
  readonly #watch: TurnWatch;
  #beatenMs = -Infinity;
  #beats = 0;
  #stopped = false;
  #cancelLook: () => void = () => undefined;
  #looking: Promise<void> = Promise.resolve();

  constructor(data: GuardData, port: MessagePort) {
    this.#data = data;
    this.#port = port;
    this.#beatEveryMs = data.workerTimeoutMs / BEATS_PER_TIMEOUT;
    this.#watch = new TurnWatch(data.lookEveryMs, systemClock.monotonicMs());
    this.#isOpenAhead = opensAhead(data);
    port.on("message", (message: ToGuard) => {
      if (message.type === "row") this.#row = message.row;
      else void this.#stop();
    });
    if (this.#isOpenAhead) this.#looking = this.#openAhead();
    void this.#looking.then(() => {
      this.#say({ type: "ready" });
      this.#lookAgain();
    });
  }

  #say(message: FromGuard): void {
    this.#port.postMessage(message);
  }

  async #openAhead(): Promise<void> {
    try {
      await this.#open();
    } catch {
      // Tried again when it is needed.
    }
  }

  async #open(): Promise<Ledger> {
    if (this.#ledger !== null) return this.#ledger;
    const [{ openLedger }, { silentLogger }] = await this.#load();
    this.#ledger ??= await openLedger(this.#data.store, { logger: silentLogger, create: false });
    return this.#ledger;
  }

  async #load(): Promise<LedgerCode> {
    this.#code ??= Promise.all([import("../compose.js"), import("../runtime/logger.js")]);
    try {
      return await this.#code;
    } catch (error) {
      this.#code = null;
      throw error;
    }
  }

  #lookAgain(): void {
    if (this.#stopped) return;
    const { lookEveryMs } = this.#data;
    const dueMs = systemClock.monotonicMs() + lookEveryMs;
    this.#cancelLook = systemClock.timer(lookEveryMs, () => {
      this.#looking = this.#look(dueMs).then(() => {
        this.#lookAgain();
      });
    });
  }

  async #look(dueMs: number): Promise<void> {
    // A tenth of a second of CPU that the start of a worker can do without. Not as late as when it is
    // needed: an upgrade may have replaced the files by then.
    await this.#load().catch(() => undefined);
    const nowMs = systemClock.monotonicMs();
    const turns = Atomics.load(this.#data.turns, 0);
    const { moved, heldUpMs } = this.#watch.look({ nowMs, dueMs, turns });
    if (moved) {
      await this.#moved(heldUpMs);
      return;
    }
    if (heldUpMs < this.#beatEveryMs || heldUpMs > this.#data.jobTimeoutMs) return;
    if (nowMs - this.#beatenMs >= this.#beatEveryMs) await this.#beat(nowMs);
  }

  async #moved(heldUpMs: number): Promise<void> {
    if (this.#beats > 0) this.#say({ type: "covered", heldUpMs, beats: this.#beats });
    this.#beats = 0;
    if (!this.#isOpenAhead) await this.#closeLedger();
  }

  async #beat(nowMs: number): Promise<void> {
    if (this.#row === null) return;
    try {
      const ledger = await this.#open();
      if (this.#isStopped()) return;
      await ledger.heartbeat(this.#row, []);
      this.#beatenMs = nowMs;
      this.#beats += 1;
    } catch {
      // The next look tries again; the main thread tells of a ledger that stays away.
    }
  }

  #isStopped(): boolean {
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelLook();
    await this.#looking;
    await this.#closeLedger();
    // Nothing else keeps the thread.
    this.#port.close();
  }

  async #closeLedger(): Promise<void> {
    const ledger = this.#ledger;
    this.#ledger = null;
    try {
      await ledger?.close();
    } catch {
      // It goes with the thread.
    }
  }
}

if (parentPort !== null) new StallGuardThread(workerData as GuardData, parentPort);
