/**
 * Records what became of jobs, whatever the ledger does meanwhile. Concurrent ends go in one list.
 * When the ledger is out of reach, or its disk is full, each end is kept and tried again until it is
 * recorded, is known to be too late, or `giveUp` is called at the end of a shutdown; what is left
 * then is found by stuck detection. What is kept is bounded by the slots and the claim-ahead buffer,
 * since nothing is claimed while ends can't be recorded.
 */
import { LedgerError } from "../job/errors.js";
import type { Claim } from "../job/job.js";
import { delayWithoutJitter, withJitter } from "../job/retry.js";
import { TRANSITIONS, type Status } from "../job/state.js";
import type { End, Ledger, Settlement } from "../ledger/ledger.js";
import type { Clock } from "../runtime/clock.js";
import type { Logger } from "../runtime/logger.js";
import type { Random } from "../runtime/random.js";
import { Batcher, type Waiting } from "./batcher.js";
import { isFinal, type LedgerFaults } from "./ledger-faults.js";

/**
 * The status that was recorded: where a retry meets a cancel it is `cancelled`. `lost`: the claim was
 * no longer ours, nothing changed. `unrecorded`: given up.
 */
export type SettleOutcome = Status | "lost" | "unrecorded";

/** A ledger that restarts is back within a second or two; one that is down longer is not hammered. */
const BACKOFF = { baseMs: 100, maxMs: 5_000 };

const UNRECORDABLE: End = {
  event: "fail",
  errorMessage: "UnrecordableEnd: the job ended, but the ledger could not record how",
};

/** Whoever had an end recorded. */
export interface SettleListener {
  /** Once. Must not throw. */
  onSettled(end: End, outcome: SettleOutcome): void;
}

export interface SettlerPorts {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly random: Random;
  readonly faults: LedgerFaults;
  readonly logger: Logger;
}

export class Settler {
  readonly #ports: SettlerPorts;
  readonly #batcher: Batcher<Settlement, Status | null>;
  /** The pause after a failure, shared by all ends that wait for the ledger. */
  #pause: Promise<void> | null = null;
  #endPause: (() => void) | null = null;
  #failures = 0;
  #givenUp = false;
  /** To first tries. */
  readonly #answers: Answers = {
    worked: () => {
      this.#worked();
    },
    failed: async (settlement, error, listener) => {
      listener.onSettled(settlement.end, await this.#settleAgain(settlement, error));
    },
  };

  constructor(ports: SettlerPorts) {
    this.#ports = ports;
    this.#batcher = new Batcher((list) => ports.ledger.settle(list), ports.clock, {
      weigh: settlementChars,
    });
  }

  settle(claim: Claim, end: End): Promise<SettleOutcome> {
    return new Promise((resolve) => {
      const onSettled = (_end: End, outcome: SettleOutcome): void => {
        resolve(outcome);
      };
      this.settleFor(claim, end, { onSettled });
    });
  }

  /** As `settle`, for whoever does this so often that a promise for each is felt. */
  settleFor({ jobId, workerId, attempt }: Claim, end: End, listener: SettleListener): void {
    this.#batcher.push(new FirstTry({ jobId, workerId, attempt, end }, listener, this.#answers));
  }

  /** Ends all further tries; calls under way still answer. */
  giveUp(): void {
    this.#givenUp = true;
    this.#endPause?.();
  }

  /**
   * Again and again, until it is recorded or there is no point any more. An error that ledgers do not
   * reject with is a bug that one of the list may have set off: then each is tried alone, so that it
   * can't fail its mates, and at last recorded as failed, since every job ends.
   */
  async #settleAgain(settlement: Settlement, firstError: unknown): Promise<SettleOutcome> {
    const { ledger, logger } = this.#ports;
    let error = firstError;
    let trial = settlement;
    let alone = false;
    for (;;) {
      if (error instanceof LedgerError) {
        if (!(await this.#waitFor(error))) return "unrecorded";
        alone = false;
      } else {
        logger.error(
          { job_id: settlement.jobId, err: error, alone },
          "recording an end failed oddly",
        );
        if (alone && trial !== settlement) return this.#leaveUnrecorded();
        if (alone) trial = { ...settlement, end: UNRECORDABLE };
        alone = true;
      }
      try {
        const status = alone
          ? ((await ledger.settle([trial]))[0] ?? null)
          : await this.#batcher.add(trial);
        this.#worked();
        if (trial !== settlement) return "unrecorded";
        return status ?? (await this.#recordedBefore(settlement)) ?? "lost";
      } catch (nextError) {
        error = nextError;
      }
    }
  }

  /** @returns whether to try again. */
  async #waitFor(error: LedgerError): Promise<boolean> {
    this.#ports.faults.failed("settle", error);
    if (this.#isOver(error)) return false;
    await this.#pauseOnce();
    return !this.#isOver(error);
  }

  #worked(): void {
    this.#failures = 0;
    this.#ports.faults.worked("settle");
  }

  /** The ledger does answer; a fault must not outlive the tries that would end it. */
  #leaveUnrecorded(): SettleOutcome {
    this.#worked();
    return "unrecorded";
  }

  /** The connection may have broken after the commit: then the second try finds its own record. */
  async #recordedBefore({ jobId, workerId, attempt, end }: Settlement): Promise<Status | null> {
    const [job] = await this.#ports.ledger.get([jobId]);
    if (job?.workerId !== workerId || job.attempt !== attempt) return null;
    const { to } = TRANSITIONS[end.event];
    const stopped = job.status === TRANSITIONS.stop.to && job.cancelRequestedAtMs !== null;
    return job.status === to || (to === "queued" && stopped) ? job.status : null;
  }

  #isOver(error: LedgerError): boolean {
    return this.#givenUp || isFinal(error);
  }

  #pauseOnce(): Promise<void> {
    this.#pause ??= new Promise((resolve) => {
      this.#failures += 1;
      const delayMs = withJitter(
        delayWithoutJitter(this.#failures, BACKOFF),
        this.#ports.random.unit(),
      );
      const end = (): void => {
        cancel();
        this.#pause = null;
        this.#endPause = null;
        resolve();
      };
      const cancel = this.#ports.clock.timer(delayMs, end);
      this.#endPause = end;
    });
    return this.#pause;
  }
}

interface Answers {
  worked(): void;
  failed(settlement: Settlement, error: unknown, listener: SettleListener): Promise<void>;
}

/** One for each end, so a class rather than closures. */
class FirstTry implements Waiting<Settlement, Status | null> {
  readonly item: Settlement;
  readonly #listener: SettleListener;
  readonly #answers: Answers;
  #isAnswered = false;

  constructor(item: Settlement, listener: SettleListener, answers: Answers) {
    this.item = item;
    this.#listener = listener;
    this.#answers = answers;
  }

  resolve(status: Status | null): void {
    this.#isAnswered = true;
    this.#answers.worked();
    this.#listener.onSettled(this.item.end, status ?? "lost");
  }

  reject(error: unknown): void {
    // The end is on record; what failed is whoever was told of it.
    if (this.#isAnswered) return;
    void this.#answers.failed(this.item, error, this.#listener);
  }
}

function settlementChars({ end }: Settlement): number {
  switch (end.event) {
    case "succeed":
      return end.resultJson.length;
    case "release":
      return end.payloadJson.length;
    case "fail":
    case "time_out":
    case "stop":
    case "retry":
      return 0;
    default:
      return end satisfies never;
  }
}
