/** How long and how large; `--quick` is to see that all runs, within three minutes. */

export interface Effort {
  readonly rounds: number;
  /** Time of one round of submits, ms. */
  readonly submitMs: number;
  /** Time of one round of HTTP load, whole seconds. */
  readonly httpSeconds: number;
  readonly drainJobs: number;
  readonly latencyJobs: number;
  /** P8. */
  readonly waiters: number;
  readonly waiterRounds: number;
  /** P9. */
  readonly terminalRows: number;
  /** P10, seconds. */
  readonly idleSeconds: number;
  /** P11. */
  readonly memoryJobs: number;
  /** `growth-table`, `growth-payload`, `growth-waiters`: the steps. */
  readonly tableSizes: readonly number[];
  readonly payloadBytes: readonly number[];
  readonly waiterCounts: readonly number[];
  /** Bytes of one round of `growth-payload`; with small inputs at most 5,000 jobs. */
  readonly payloadTotal: number;
  /** `growth-hours`. */
  readonly hours: Hours;
}

export interface Hours {
  readonly minutes: number;
  readonly perSecond: number;
  readonly sampleSeconds: number;
}

export const FULL: Effort = {
  rounds: 5,
  submitMs: 3_000,
  httpSeconds: 5,
  drainJobs: 20_000,
  latencyJobs: 200,
  waiters: 10_000,
  waiterRounds: 3,
  terminalRows: 5_000_000,
  idleSeconds: 20,
  memoryJobs: 1_000_000,
  tableSizes: [0, 10_000, 100_000, 1_000_000, 5_000_000],
  payloadBytes: [100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000],
  waiterCounts: [100, 1_000, 5_000, 10_000],
  payloadTotal: 50_000_000,
  hours: { minutes: 60, perSecond: 200, sampleSeconds: 60 },
};

export const QUICK: Effort = {
  rounds: 1,
  submitMs: 500,
  httpSeconds: 1,
  drainJobs: 3_000,
  latencyJobs: 20,
  waiters: 1_000,
  waiterRounds: 1,
  terminalRows: 50_000,
  // A server alone asks the store for something every 10 s.
  idleSeconds: 11,
  memoryJobs: 40_000,
  tableSizes: [0, 10_000, 50_000],
  payloadBytes: [100, 10_000, 1_000_000, 10_000_000],
  waiterCounts: [100, 1_000],
  payloadTotal: 10_000_000,
  hours: { minutes: 1, perSecond: 200, sampleSeconds: 5 },
};
