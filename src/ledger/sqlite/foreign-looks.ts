/**
 * Tells watchers what other connections have changed. What has changed is looked at when it is noticed.
 * Where so many jobs are watched that this is not all of them, the others are looked at in turn, some
 * hundred at a time, for as long as there were changes since each one's last look: ends, claims and
 * cancel requests are not missed by the first way, but a job that ran and waits again in between, or
 * was forgotten, may be, and so is what a process of an older version does, or is written past the
 * ledger. It costs a hundredth of the time, and takes a second or two for 10,000 jobs.
 */
import type { Clock } from "../../runtime/clock.js";
import type { Logger } from "../../runtime/logger.js";
import { LOOK_CHUNK, type Watchers } from "../sql/watchers.js";

const STEP_MS = 50;
/** Steps that fail come at ever longer pauses, up to this. */
const LONGEST_STEP_MS = 1_000;

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
  #pauseMs = STEP_MS;
  #cancelStep: (() => void) | null = null;
  #closed = false;

  constructor(ports: ForeignLooksPorts) {
    this.#ports = ports;
  }

  /** Another connection has changed something. */
  changed(): void {
    this.#ports.watchers.look().then(
      (all) => {
        if (!all) this.#goRound();
      },
      (error: unknown) => {
        this.#failed(error);
        this.#goRound();
      },
    );
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
    this.#cancelStep ??= this.#ports.clock.timer(this.#pauseMs, () => {
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
      this.#pauseMs = STEP_MS;
    } catch (error) {
      this.#failed(error);
      this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_STEP_MS);
      this.#changed = true;
    }
  }

  #failed(error: unknown): void {
    this.#ports.logger.debug({ error: String(error) }, "could not look at watched jobs");
  }
}
