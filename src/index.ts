/**
 * The public library: explicit re-exports, nothing else. Task files import this too, and each of
 * their threads loads it, so what stands here must load little: heavier parts (ledgers, servers)
 * are imported when they are called for.
 */
export { task } from "./task/task.js";
export type { Isolation, Task, TaskContext, TaskLog, TaskOptions } from "./task/task.js";
export { Discard, Retry } from "./task/errors.js";
export type { RetryOptions } from "./task/errors.js";
export { createJobtable } from "./jobtable.js";
export { createTestJobtable } from "./jobtable/testing.js";
export { TaskFailed } from "./jobtable/api.js";
export type {
  InTransaction,
  InputOf,
  JobOf,
  JobRef,
  JobsOf,
  Jobtable,
  JobtableOptions,
  Outcome,
  OutputOf,
  RetryOutcome,
  Submission,
  SubmitOptions,
  TestJobtable,
  TestJobtableOptions,
  WaitForOptions,
} from "./jobtable/api.js";
export type { JobtablePlans, PlanCheck, PlanRef, PlanStart } from "./jobtable/plan-api.js";
export type { PlanObject } from "./plan/file/schema.js";
export type { PlanView, RunView } from "./plan/view.js";
export { defineConfig } from "./config/define-config.js";
export type { SettingsFile } from "./config/define-config.js";
export { JobtableError, LedgerError } from "./job/errors.js";
export type { ErrorCode } from "./job/errors.js";
export { formatJobId, parseJobId } from "./job/id.js";
export type { AttemptError, Job, Phase } from "./job/job.js";
export type { Status, TerminalStatus } from "./job/state.js";
export type { CancelOutcome, Counts, JobPage, ListQuery } from "./ledger/ledger.js";
export type { TransactionClient } from "./ledger/within.js";
export type { EngineSettings, HealthReport } from "./engine/api.js";
export type { Logger, LogFields } from "./runtime/logger.js";
