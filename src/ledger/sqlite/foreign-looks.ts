/**
 * Tells watchers what other connections have changed. What has changed is looked at when it is noticed.
 * Where so many jobs are watched that this is not all of them, the others are looked at in turn, some
 * hundred at a time, for as long as there were changes since each one's last look: ends, claims and
 * cancel requests are never missed by the first way, but a job that ran and waits again in between, or
 * was forgotten, may be, and so is whatever is written past the ledger. It costs a hundredth of the
 * time, and takes a second for 10,000 jobs.
 */
import type { Clock } from "../../runtime/clock.js";
import type { Logger } from "../../runtime/logger.js";
import { LOOK_CHUNK, type Watchers } from "../sql/watchers.js";

const STEP_MS = 50;

export interface ForeignLooksPorts {
  readonly watchers: Pick<Watchers, "size" | "jobIds" | "look" | "lookAt">;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class ForeignLooks {
  readonly #ports: ForeignLooksPorts;
  /** Of the present round: those that it has still to look at. */
  #left: readonly string[] = [];
  /** Something has changed since the round began. */
  #changed = false;
  #cancelStep: (() => void) | null = null;
  #closed = false;

  constructor(ports: ForeignLooksPorts) {
    this.#ports = ports;
  }

  /** Another connection has changed something. */
  changed(): void {
    const { watchers } = this.#ports;
    if (watchers.size > LOOK_CHUNK) this.#goRound();
    watchers.look().catch((error: unknown) => {
      this.#failed(error);
      this.#goRound();
    });
  }

  close(): void {
    this.#closed = true;
    this.#cancelStep?.();
  }

  #goRound(): void {
    this.#changed = true;
    this.#armStep();
  }

  #armStep(): void {
    if (this.#closed) return;
    this.#cancelStep ??= this.#ports.clock.timer(STEP_MS, () => {
      void this.#step().then(() => {
        this.#cancelStep = null;
        if (this.#changed || this.#left.length > 0) this.#armStep();
      });
    });
  }

  async #step(): Promise<void> {
    const { watchers } = this.#ports;
    if (this.#left.length === 0) {
      this.#changed = false;
      this.#left = watchers.jobIds;
    }
    const chunk = this.#left.slice(0, LOOK_CHUNK);
    this.#left = this.#left.slice(LOOK_CHUNK);
    try {
      await watchers.lookAt(chunk);
    } catch (error) {
      this.#failed(error);
      this.#changed = true;
    }
  }

  #failed(error: unknown): void {
    this.#ports.logger.debug({ error: String(error) }, "could not look at watched jobs");
  }
}
