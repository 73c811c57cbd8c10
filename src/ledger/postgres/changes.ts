/**
 * Everything about being told: who watches, what this process has changed, what others tell over the
 * channel, and looking at watched jobs while the channel does not come through.
 */
import { randomBytes } from "node:crypto";
import type { Unsubscribe } from "../ledger.js";
import type pg from "pg";
import type { Clock } from "../../runtime/clock.js";
import type { Logger } from "../../runtime/logger.js";
import { text } from "../sql/rows.js";
import { Watchers } from "../sql/watchers.js";
import { textArray } from "./arrays.js";
import { Listener } from "./listener.js";
import { changesMessages, changesPrefix, probeMessage, readMessage } from "./messages.js";
import type { RunStatement } from "./session.js";
import { WorkSignal } from "./work-signal.js";

/** How often watched jobs are looked at while nothing can be heard. */
const LOOK_EVERY_MS = 1_000;

/** What a look says of a job that is not there. */
const ABSENT = "";

export interface ChangesPorts {
  /** Eight characters that name this ledger among all that share the channel. */
  readonly origin: string;
  readonly channel: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly run: RunStatement;
  connect(): Promise<pg.Client>;
}

/** Names a ledger among all that share a channel. */
export function newOrigin(): string {
  return randomBytes(4).toString("hex");
}

/** What a verb works with. */
export interface Means {
  readonly run: RunStatement;
  readonly changes: Changes;
}

export class Changes {
  readonly #ports: ChangesPorts;
  readonly #elsewhere = newOrigin();
  /** Of this process's changes: what comes back with it has been told as its answer arrived. */
  #origin: string;
  #inDoubt = false;
  readonly #watchers: Watchers;
  readonly #listener: Listener;
  readonly #workSignal: WorkSignal;
  #cancelLook: () => void = () => undefined;
  #looking: Promise<void> = Promise.resolve();
  #sending: Promise<unknown> = Promise.resolve();

  constructor(ports: ChangesPorts) {
    this.#ports = ports;
    this.#origin = ports.origin;
    this.#watchers = new Watchers({ look: (jobIds) => this.#lookAt(jobIds) });
    this.#workSignal = new WorkSignal(ports.clock, () => {
      this.#sending = this.#send(changesPrefix(this.#origin, true)).catch((error: unknown) => {
        ports.logger.debug({ error: String(error) }, "could not tell others that there is work");
      });
    });
    this.#listener = new Listener({
      ...ports,
      connect: () => ports.connect(),
      probe: (number) => this.#send(probeMessage(ports.origin, number)),
      onPayload: (payload) => {
        this.#heard(payload);
      },
      onGap: () => {
        this.#watchers.all();
      },
    });
  }

  /** Resolves when changes are heard of, or when that did not work at once; it goes on trying. */
  async listen(): Promise<void> {
    await this.#listener.start();
    this.#lookLater();
  }

  watch(jobId: string, onChange: () => void): Unsubscribe {
    return this.#watchers.watch(jobId, onChange);
  }

  onWork(onWork: () => void): Unsubscribe {
    return this.#watchers.onWork(onWork);
  }

  /** Channel and message of a submit; null when it shall not take it along. */
  tellingOfSubmit(): [channel: string, message: string | null] {
    const [channel, message] = this.telling(true);
    return [channel, this.#workSignal.takesAlong() ? message : null];
  }

  /**
   * Channel and message of a submit whose commit is not this ledger's: it comes back as from another
   * process, and so is told here as well when it is true.
   */
  tellingElsewhere(): [channel: string, message: string] {
    return [this.#ports.channel, changesPrefix(this.#elsewhere, true)];
  }

  /** Channel and beginning of a statement's messages. @param work whether jobs may become claimable by it. */
  telling(work: boolean): [channel: string, prefix: string] {
    return [this.#ports.channel, changesPrefix(this.#origin, work)];
  }

  /** Channel and messages of a statement whose jobs are known before. */
  tellingOf(jobIds: readonly string[], work: boolean): [channel: string, messages: string[]] {
    return [this.#ports.channel, changesMessages(this.#origin, work, jobIds)];
  }

  /** Jobs were recorded. @param toldOthers whether the statement took the message along. */
  submitted(jobIds: readonly string[], toldOthers: boolean): void {
    if (!toldOthers) this.#workSignal.owe();
    this.made(jobIds, true);
  }

  /** This process has changed these jobs; its statement has told others. */
  made(jobIds: readonly string[], work: boolean): void {
    for (const jobId of jobIds) this.#watchers.changed(jobId);
    if (work) this.#watchers.work();
  }

  /**
   * A call had no answer, but what it was to change may have happened, or happen yet. Its message comes
   * as another process's from now on; if it came already, and was taken for told, a look will tell.
   */
  unanswered(): void {
    this.#origin = newOrigin();
    this.#inDoubt = true;
  }

  /** The ledger has answered a call. */
  answered(): void {
    if (!this.#inDoubt) return;
    this.#inDoubt = false;
    this.#watchers.all();
  }

  async close(): Promise<void> {
    this.#cancelLook();
    this.#workSignal.settle();
    this.#watchers.clear();
    await this.#listener.close();
    await Promise.all([this.#sending, this.#looking]);
    this.#cancelLook();
  }

  #send(message: string): Promise<unknown> {
    return this.#ports.run("notify", [this.#ports.channel, message]);
  }

  #heard(payload: string): void {
    const received = readMessage(payload);
    if (received === null) return;
    const { origin, message } = received;
    if (message.kind === "probe") {
      if (origin === this.#ports.origin) this.#listener.heardProbe(message.number);
    } else if (origin !== this.#origin) {
      this.made(message.jobIds, message.work);
    }
  }

  #lookLater(): void {
    this.#cancelLook = this.#ports.clock.timer(LOOK_EVERY_MS, () => {
      this.#looking = this.#lookIfDeaf();
    });
  }

  async #lookIfDeaf(): Promise<void> {
    try {
      if (!this.#listener.hears && this.#watchers.size > 0) await this.#watchers.look();
    } catch (error) {
      this.#ports.logger.debug({ error: String(error) }, "could not look at watched jobs");
    } finally {
      this.#lookLater();
    }
  }

  async #lookAt(jobIds: readonly string[]): Promise<string[]> {
    const rows = await this.#ports.run("look", [textArray(jobIds)]);
    const found = new Map(rows.map((row) => [text(row[0]), text(row[1])]));
    return jobIds.map((jobId) => found.get(jobId) ?? ABSENT);
  }
}
