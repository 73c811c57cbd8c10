/** What every started engine does for the ledger as a whole: sweeps, expiry and retention, wired together. */
import type { Ledger, Unsubscribe } from "../ledger/ledger.js";
import type { Clock } from "../runtime/clock.js";
import type { Logger } from "../runtime/logger.js";
import type { Processes } from "../runtime/process-identity.js";
import type { EngineSettings } from "./api.js";
import { Expiry } from "./expiry.js";
import type { LedgerFaults } from "./ledger-faults.js";
import { Retention } from "./retention.js";
import { Sweeper } from "./sweeper.js";

export interface MaintenancePorts {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly faults: LedgerFaults;
  readonly processes: Processes;
  readonly settings: EngineSettings;
  /** Of this process; null where it runs no jobs itself. */
  readonly workerId: string | null;
  /** Whether this process is known to be alive; never rejects. */
  readonly alive: () => Promise<boolean>;
}

export class Maintenance {
  readonly retention: Retention;
  readonly expiry: Expiry;
  readonly #sweeper: Sweeper;
  readonly #ledger: Ledger;
  #stopListening: Unsubscribe | null = null;

  constructor(ports: MaintenancePorts) {
    const { ledger, clock, faults, settings } = ports;
    this.#ledger = ledger;
    this.retention = new Retention({
      ledger,
      clock,
      faults,
      ttlMs: settings.asyncJobTtlMs,
      keep: settings.asyncMaxCompleted,
    });
    this.expiry = new Expiry({ ledger, clock, faults, waitLimitMs: settings.asyncTimeoutMs });
    this.#sweeper = new Sweeper({
      ...ports,
      retention: this.retention,
      jobTimeoutMs: settings.jobTimeoutMs,
      workerTimeoutMs: settings.workerTimeoutMs,
    });
  }

  start(): void {
    this.#stopListening = this.#ledger.onWork(() => {
      this.expiry.queued();
    });
    this.expiry.start();
    this.#sweeper.start();
  }

  /** Idempotent; waits for the statements under way. */
  async stop(): Promise<void> {
    this.#stopListening?.();
    this.#stopListening = null;
    await Promise.all([this.#sweeper.stop(), this.expiry.stop(), this.retention.stop()]);
  }
}
