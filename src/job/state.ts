/**
 * The states of a job and the moves between them, as data: the types, the guards in SQL, the
 * diagram in docs/state-machine.md and the matrix that the tests walk all derive from these two
 * tables. A status is added here or nowhere.
 */

/** Every status, in the order of a job's life. `terminal` ones have no way out. */
export const STATUSES = {
  queued: { terminal: false },
  running: { terminal: false },
  succeeded: { terminal: true },
  failed: { terminal: true },
  timed_out: { terminal: true },
  cancelled: { terminal: true },
} as const;

export type Status = keyof typeof STATUSES;
export type TerminalStatus = {
  [S in Status]: (typeof STATUSES)[S]["terminal"] extends true ? S : never;
}[Status];

export const ALL_STATUSES = Object.keys(STATUSES) as readonly Status[];
export const TERMINAL_STATUSES = ALL_STATUSES.filter(isTerminal);

export function isTerminal(status: Status): status is TerminalStatus {
  return STATUSES[status].terminal;
}

/**
 * Who may make a move. `worker`: any worker that claims. `owner`: the worker whose id and attempt
 * number stand in the record. `user`: anyone who asks. `sweeper`: maintenance, by any process.
 */
export type Actor = "worker" | "owner" | "user" | "sweeper";

/** What happens to a job, by whom, and where it leads; nothing else moves a job. */
export const TRANSITIONS = {
  claim: { from: "queued", to: "running", by: "worker" },
  cancel: { from: "queued", to: "cancelled", by: "user" },
  expire: { from: "queued", to: "timed_out", by: "sweeper" },
  reject: { from: "queued", to: "failed", by: "sweeper" },
  succeed: { from: "running", to: "succeeded", by: "owner" },
  fail: { from: "running", to: "failed", by: "owner" },
  time_out: { from: "running", to: "timed_out", by: "owner" },
  stop: { from: "running", to: "cancelled", by: "owner" },
  /** Failed with attempts left: back to the queue, due again after a pause. */
  retry: { from: "running", to: "queued", by: "owner" },
  /** Claimed but never started: back to the queue, the attempt not counted. */
  release: { from: "running", to: "queued", by: "owner" },
  /** The worker was lost and no attempt is left. */
  strand: { from: "running", to: "failed", by: "sweeper" },
  /** The worker was lost and attempts are left. */
  rescue: { from: "running", to: "queued", by: "sweeper" },
  /** The worker was lost after the user had asked to cancel. */
  bury: { from: "running", to: "cancelled", by: "sweeper" },
} as const satisfies Record<string, { from: Status; to: Status; by: Actor }>;

export type JobEvent = keyof typeof TRANSITIONS;

/** Whether `event` may happen to a job in `status`. */
export function allows(status: Status, event: JobEvent): boolean {
  return TRANSITIONS[event].from === status;
}
