/**
 * Every setting in one table: its names, kind, unit, bounds, default and meaning. The flags, the
 * `Config` type, `jobtable config` and docs/settings.md all derive from it; a setting is added here
 * or nowhere.
 *
 * `default`, `min` and `max` of a duration count in the row's `unit`; in the Config it is in ms.
 */
import { LOG_LEVELS } from "../runtime/logger.js";

interface Named {
  /** The field of `Config`; its end names the unit. */
  readonly key: string;
  /** Environment variables, the first that is set wins; the later ones are aliases. */
  readonly env: readonly string[];
  /** One sentence for the help and the documentation. */
  readonly meaning: string;
}

interface Bounded extends Named {
  readonly min: number;
  readonly max: number;
  readonly default: number;
}

export type SettingRow =
  | (Named & { readonly kind: "boolean"; readonly default: boolean })
  | (Bounded & { readonly kind: "integer"; readonly defaultInMemory?: number })
  | (Bounded & { readonly kind: "duration"; readonly unit: "ms" | "s" })
  | (Bounded & { readonly kind: "bytes" })
  | (Named & { readonly kind: "text"; readonly default: string | null })
  | (Named & { readonly kind: "secret"; readonly default: null })
  | (Named & { readonly kind: "store"; readonly default: string })
  | (Named & { readonly kind: "url"; readonly default: null })
  | (Named & {
      readonly kind: "choice";
      readonly choices: readonly string[];
      readonly default: string;
    });

const YEAR_S = 31_536_000;
const MAX_INT32 = 2 ** 31 - 1;
const KIB = 1_024;

export const SETTINGS = {
  async_enabled: {
    key: "asyncEnabled",
    env: ["JOBTABLE_ASYNC_ENABLED", "CLEVERAGENTS_ASYNC_ENABLED"],
    kind: "boolean",
    default: true,
    meaning: "Off: the /jobs paths answer 404 and only the synchronous path works.",
  },
  async_timeout: {
    key: "asyncTimeoutMs",
    env: ["JOBTABLE_ASYNC_TIMEOUT"],
    kind: "duration",
    unit: "ms",
    default: 300_000,
    min: 0,
    max: YEAR_S * 1_000,
    meaning: "Longest wait of a job for a worker; 0 = unlimited.",
  },
  async_max_queue: {
    key: "asyncMaxQueue",
    env: ["JOBTABLE_ASYNC_MAX_QUEUE"],
    kind: "integer",
    default: 16,
    min: -MAX_INT32,
    max: MAX_INT32,
    meaning: "Bound on jobs that wait or run; 0 or less admits nothing.",
  },
  async_job_ttl: {
    key: "asyncJobTtlMs",
    env: ["JOBTABLE_ASYNC_JOB_TTL", "CLEVERAGENTS_ASYNC_JOB_TTL"],
    kind: "duration",
    unit: "s",
    default: 86_400,
    min: 0,
    max: 10 * YEAR_S,
    meaning: "How long a job that has ended is kept, with its result.",
  },
  async_max_completed: {
    key: "asyncMaxCompleted",
    env: ["JOBTABLE_ASYNC_MAX_COMPLETED"],
    kind: "integer",
    default: 100_000,
    defaultInMemory: 100,
    min: 0,
    max: MAX_INT32,
    meaning: "Most jobs kept after they have ended; the oldest go first.",
  },
  max_workers: {
    key: "maxWorkers",
    env: ["JOBTABLE_ASYNC_MAX_WORKERS", "CLEVERAGENTS_ASYNC_MAX_WORKERS"],
    kind: "integer",
    default: 4,
    min: 1,
    max: 1_024,
    meaning: "Slots of the pool that runs jobs and synchronous requests.",
  },
  poll_interval: {
    key: "pollIntervalMs",
    env: ["JOBTABLE_ASYNC_POLL_INTERVAL", "CLEVERAGENTS_ASYNC_POLL_INTERVAL"],
    kind: "duration",
    unit: "s",
    default: 1,
    min: 0.01,
    max: 3_600,
    meaning: "How often a worker looks for jobs when nothing wakes it.",
  },
  job_timeout: {
    key: "jobTimeoutMs",
    env: ["JOBTABLE_ASYNC_JOB_TIMEOUT", "CLEVERAGENTS_ASYNC_JOB_TIMEOUT"],
    kind: "duration",
    unit: "s",
    default: 3_600,
    min: 1,
    max: YEAR_S,
    meaning: "Age of a running job's heartbeat at which it is stuck.",
  },
  worker_timeout: {
    key: "workerTimeoutMs",
    env: ["JOBTABLE_WORKER_TIMEOUT"],
    kind: "duration",
    unit: "s",
    default: 30,
    min: 1,
    max: 86_400,
    meaning: "Age of a worker's heartbeat at which it is lost, and its jobs stuck with it.",
  },
  model_run_timeout: {
    key: "modelRunTimeoutMs",
    env: ["JOBTABLE_MODEL_RUN_TIMEOUT"],
    kind: "duration",
    unit: "ms",
    default: 0,
    min: 0,
    max: YEAR_S * 1_000,
    meaning: "Limit of a synchronous request, its wait included, and of a job's run; 0 = none.",
  },
  max_queue_depth: {
    key: "maxQueueDepth",
    env: ["JOBTABLE_MAX_QUEUE_DEPTH"],
    kind: "integer",
    default: 0,
    min: 0,
    max: MAX_INT32,
    meaning: "Longest waiting line of synchronous requests; 0 = unlimited.",
  },
  cancel_grace: {
    key: "cancelGraceMs",
    env: ["JOBTABLE_CANCEL_GRACE"],
    kind: "duration",
    unit: "s",
    default: 2,
    min: 0,
    max: 3_600,
    meaning: "How long a handler may go on after it was told to stop, before its thread is killed.",
  },
  shutdown_timeout: {
    key: "shutdownTimeoutMs",
    env: ["JOBTABLE_SHUTDOWN_TIMEOUT"],
    kind: "duration",
    unit: "s",
    default: 8,
    min: 0,
    max: 86_400,
    meaning: "How long a stopping process waits for the jobs that it runs.",
  },
  host: {
    key: "host",
    env: ["JOBTABLE_HOST"],
    kind: "text",
    default: "127.0.0.1",
    meaning: "Address to listen on; any but loopback needs auth_token.",
  },
  port: {
    key: "port",
    env: ["JOBTABLE_PORT"],
    kind: "integer",
    default: 8_202,
    min: 0,
    max: 65_535,
    meaning: "Port to listen on; 0 picks a free one and prints it.",
  },
  auth_token: {
    key: "authToken",
    env: ["JOBTABLE_AUTH_TOKEN"],
    kind: "secret",
    default: null,
    meaning:
      "What clients send as `Authorization: Bearer`, and commands to their server; a server without one: loopback only.",
  },
  request_size_limit: {
    key: "requestSizeLimitBytes",
    env: ["JOBTABLE_REQUEST_SIZE_LIMIT"],
    kind: "bytes",
    default: 16 * KIB * KIB,
    min: 1 * KIB,
    max: KIB * KIB * KIB,
    meaning: "Largest request body.",
  },
  default_task: {
    key: "defaultTask",
    env: ["JOBTABLE_DEFAULT_TASK"],
    kind: "text",
    default: null,
    meaning: "The task of a `POST /jobs` that names none; with one task, that one.",
  },
  store: {
    key: "store",
    env: ["JOBTABLE_STORE"],
    kind: "store",
    default: "sqlite:.jobtable/jobs.db",
    meaning:
      "Where jobs are recorded: memory (gone with the process), sqlite:PATH or postgres://USER@HOST/DATABASE?schema=NAME.",
  },
  plans: {
    key: "plans",
    env: ["JOBTABLE_PLANS"],
    kind: "boolean",
    default: true,
    meaning:
      "Whether a worker runs plans, whose steps are commands; off where the store's users may not run any here.",
  },
  plans_over_http: {
    key: "plansOverHttp",
    env: ["JOBTABLE_PLANS_OVER_HTTP"],
    kind: "boolean",
    default: false,
    meaning: "Whether plans that were used before can be executed and applied over HTTP.",
  },
  server: {
    key: "server",
    env: ["JOBTABLE_SERVER"],
    kind: "url",
    default: null,
    meaning: "The server that submit, jobs and diagnostics ask; none: they open the store.",
  },
  log_level: {
    key: "logLevel",
    env: ["JOBTABLE_LOG_LEVEL"],
    kind: "choice",
    choices: LOG_LEVELS,
    default: "info",
    meaning: "Least weight of what is logged, as JSON lines on standard error.",
  },
} as const satisfies Record<string, SettingRow>;

export type SettingName = keyof typeof SETTINGS;
type Rows = typeof SETTINGS;

type ValueOf<Row> = Row extends { kind: "boolean" }
  ? boolean
  : Row extends { kind: "integer" | "duration" | "bytes" }
    ? number
    : Row extends { kind: "choice"; choices: readonly (infer Choice)[] }
      ? Choice
      : Row extends { default: null }
        ? string | null
        : string;

/** All settings in force: durations in ms, sizes in bytes. Frozen. */
export type Config = {
  readonly [Name in SettingName as Rows[Name]["key"]]: ValueOf<Rows[Name]>;
};

export const SETTING_NAMES = Object.keys(SETTINGS) as readonly SettingName[];

/** The row without its literal types, for code that treats all rows alike. */
export function settingRow(name: SettingName): SettingRow {
  return SETTINGS[name];
}

/** `--async-max-queue` */
export function flagOf(name: SettingName): string {
  return `--${name.replaceAll("_", "-")}`;
}
