/**
 * The connection that hears of changes. It makes sure by itself that it does: now and then the ledger
 * sends a probe from another connection, which must come back here in time. That finds a connection
 * which broke, one that is open at this end only, and a proxy that takes LISTEN but passes nothing on.
 * After each of these it connects anew, with growing pauses; each time it listens again, all that was
 * missed is unknown, and `onGap` says so.
 *
 * `hears` is true from the first probe that came back to the first sign that none would: while it is
 * false, the ledger looks instead of listening.
 */
import type pg from "pg";
import type { Clock } from "../../runtime/clock.js";
import type { Logger } from "../../runtime/logger.js";

const PROBE_EVERY_MS = 10_000;
const PROBE_LIMIT_MS = 5_000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 15_000;

export interface ListenerPorts {
  readonly channel: string;
  readonly clock: Clock;
  readonly logger: Logger;
  connect(): Promise<pg.Client>;
  /** Sends a probe with this number over another connection. */
  probe(number: number): Promise<unknown>;
  onPayload(payload: string): void;
  onGap(): void;
}

type ProbeAnswer = "heard" | "silence" | "unsent";

export class Listener {
  readonly #ports: ListenerPorts;
  #hears = false;
  #closed = false;
  #failures = 0;
  #probes = 0;
  /** Ends what the loop waits for: a life of a connection, a pause. */
  #interrupt: () => void = () => undefined;
  #probeEnded: (answer: ProbeAnswer) => void = () => undefined;
  #loop: Promise<void> = Promise.resolve();

  constructor(ports: ListenerPorts) {
    this.#ports = ports;
  }

  get hears(): boolean {
    return this.#hears;
  }

  /** Resolves when it listens, or when that did not work at once; it goes on trying. */
  start(): Promise<void> {
    return new Promise((resolve) => {
      this.#loop = this.#run(resolve);
    });
  }

  /** The probe of this number has come back. */
  heardProbe(number: number): void {
    if (number === this.#probes) this.#probeEnded("heard");
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#interrupt();
    await this.#loop;
  }

  async #run(started: () => void): Promise<void> {
    let first = true;
    while (!this.#isClosed()) {
      const client = await this.#listen();
      const missed = !first;
      first = false;
      started();
      if (client !== null) {
        if (missed) this.#ports.onGap();
        await this.#live(client);
        this.#hears = false;
        endAtOnce(client);
      }
      if (!this.#isClosed()) await this.#pause();
    }
  }

  /** A method, since a call changes it while the loop waits. */
  #isClosed(): boolean {
    return this.#closed;
  }

  async #listen(): Promise<pg.Client | null> {
    const { channel, logger } = this.#ports;
    try {
      const client = await this.#ports.connect();
      this.#interrupt = () => {
        endAtOnce(client);
      };
      if (this.#isClosed()) this.#interrupt();
      client.on("notification", ({ payload }) => {
        this.#ports.onPayload(payload ?? "");
      });
      try {
        await client.query(`LISTEN ${channel}`);
        return client;
      } catch (error) {
        endAtOnce(client);
        throw error;
      }
    } catch (error) {
      logger.debug({ error: String(error) }, "can't listen to the ledger's changes");
      return null;
    }
  }

  /** Resolves when the connection has ended, is deaf, or is no longer wanted. */
  async #live(client: pg.Client): Promise<void> {
    let over = false;
    let cancelTimer: () => void = () => undefined;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        over = true;
        resolve();
      };
      this.#interrupt = end;
      client.once("end", end);
      client.once("error", end);
      const probe = (): void => {
        this.#probe().then((answer) => {
          if (over) return;
          this.#heed(answer);
          if (answer === "silence") end();
          else cancelTimer = this.#ports.clock.timer(PROBE_EVERY_MS, probe);
        }, end);
      };
      if (this.#closed) end();
      else probe();
    });
    cancelTimer();
    this.#probeEnded("silence");
  }

  async #probe(): Promise<ProbeAnswer> {
    const { clock, logger } = this.#ports;
    this.#probes += 1;
    let cancelTimer: () => void = () => undefined;
    const answered = new Promise<ProbeAnswer>((resolve) => {
      this.#probeEnded = resolve;
      cancelTimer = clock.timer(PROBE_LIMIT_MS, () => {
        resolve("silence");
      });
    });
    try {
      await this.#ports.probe(this.#probes);
      return await answered;
    } catch (error) {
      logger.debug({ error: String(error) }, "could not probe the ledger's channel");
      return "unsent";
    } finally {
      cancelTimer();
    }
  }

  #heed(answer: ProbeAnswer): void {
    if (answer === "heard") {
      this.#hears = true;
      this.#failures = 0;
      return;
    }
    // Unsent says nothing of this connection, but the same fault may have made it deaf.
    this.#hears = false;
    if (answer === "silence" && this.#failures === 0) {
      this.#ports.logger.warn(
        {},
        "NOTIFY does not come through (a proxy that pools transactions?): jobs are looked at instead",
      );
    }
  }

  async #pause(): Promise<void> {
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(this.#failures, 16));
    this.#failures += 1;
    let cancelTimer: () => void = () => undefined;
    await new Promise<void>((resolve) => {
      this.#interrupt = resolve;
      cancelTimer = this.#ports.clock.timer(pauseMs, resolve);
    });
    cancelTimer();
  }
}

/** Without a word to a server that may not answer. */
function endAtOnce(client: pg.Client): void {
  client.removeAllListeners("notification");
  client.end().catch(() => undefined);
}
