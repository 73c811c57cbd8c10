/**
 * Keeps a run's steps on record as they go, for whoever follows it from elsewhere: at once when a step
 * starts or ends, and while it writes no more than once a second. One write is under way at a time, and
 * the newest wins. A store that is out of reach for a while loses lines that somebody might have
 * watched; how each step ended is written again before the phase ends.
 */
import type { PlanRecords } from "../ledger/plan-records.js";
import type { Clock } from "../runtime/clock.js";
import type { EndedStep, StartedStep, StepsListener } from "./steps/api.js";
import type { OutputStream, StepLog } from "./steps/step-log.js";
import { stepRecord, type StepReport } from "./step-report.js";

const WRITE_EVERY_MS = 1_000;

export class StepRecorder implements StepsListener {
  readonly #jobId: string;
  readonly #records: Pick<PlanRecords, "writeStep">;
  readonly #clock: Clock;
  readonly #watcher: StepsListener | undefined;
  /** To write, the newest of each step. */
  readonly #due = new Map<number, () => StepReport>();
  #cancelTimer: (() => void) | null = null;
  #writing: Promise<void> | null = null;
  /** What came while a write was under way does not wait for the next second. */
  #isUrgent = false;

  /** @param watcher sees all of it too, as it happens. */
  constructor(
    jobId: string,
    records: Pick<PlanRecords, "writeStep">,
    clock: Clock,
    watcher?: StepsListener,
  ) {
    this.#jobId = jobId;
    this.#records = records;
    this.#clock = clock;
    this.#watcher = watcher;
  }

  stepStarted(step: StartedStep): void {
    this.#due.set(step.index, () => running(step, null));
    this.#write();
    this.#watcher?.stepStarted(step);
  }

  stepWrote(step: StartedStep, stream: OutputStream, bytes: Uint8Array, log: StepLog): void {
    this.#due.set(step.index, () => running(step, log));
    this.#cancelTimer ??= this.#clock.timer(WRITE_EVERY_MS, () => {
      this.#cancelTimer = null;
      this.#write();
    });
    this.#watcher?.stepWrote(step, stream, bytes, log);
  }

  stepEnded(step: EndedStep): void {
    this.#due.set(step.index, () => step);
    this.#write();
    this.#watcher?.stepEnded(step);
  }

  /** Resolves when all is on record. Rejects with a `LedgerError` when it can't be. */
  async end(): Promise<void> {
    this.#cancelTimer?.();
    this.#isUrgent = false;
    await this.#writing;
    await this.#writeDue();
  }

  #write(): void {
    if (this.#writing !== null) {
      this.#isUrgent = true;
      return;
    }
    this.#writing = this.#writeDue()
      // What could not be written is due again with the next news, or at the end.
      .catch(() => undefined)
      .finally(() => {
        this.#writing = null;
        if (!this.#isUrgent) return;
        this.#isUrgent = false;
        this.#write();
      });
  }

  /** What is due now: of what comes meanwhile each has its own time. */
  async #writeDue(): Promise<void> {
    for (const [index, report] of [...this.#due]) {
      await this.#records.writeStep(stepRecord(this.#jobId, report()));
      if (this.#due.get(index) === report) this.#due.delete(index);
    }
  }
}

function running(step: StartedStep, log: StepLog | null): StepReport {
  return {
    ...step,
    state: "running",
    exitCode: null,
    signal: null,
    finishedAtMs: null,
    errorMessage: null,
    log: log?.text() ?? "",
    logBytes: log?.bytes ?? 0,
  };
}
