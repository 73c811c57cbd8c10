/**
 * The typed HTTP client, `jobtable/client`: explicit re-exports, nothing else. It asks a server that
 * `jobtable serve` runs, and loads nothing of the library, no store and no package.
 */
export { JobtableClient } from "./client/client.js";
export { ClientError } from "./client/transport.js";
export type { Fetch, TransportOptions } from "./client/transport.js";
export { hasEnded } from "./client/replies.js";
export type {
  AttemptErrorView,
  DiagnosticsView,
  JobPageView,
  JobView,
  Refused,
  WorkerView,
} from "./client/replies.js";
export type {
  Accepted,
  CancelAnswer,
  Jobs,
  JobsQuery,
  ResultAnswer,
  RetryAnswer,
  RetryOptions,
  SubmitAnswer,
  SubmitRequest,
} from "./client/jobs.js";
export type { State } from "./http/wire.js";
export type { Status } from "./job/state.js";
