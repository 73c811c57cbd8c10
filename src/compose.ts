/**
 * The one place that picks a ledger, and what the library puts together with it. Each ledger is
 * loaded when its store is asked for: what is not used need not be loaded, or installed.
 */
import type { PlanWork } from "./compose/plans.js";
import { stallGuardOn } from "./compose/stall-guard.js";
import { processEnvironment } from "./config.js";
import { SETTINGS, settingRow, type SettingName } from "./config/settings.js";
import { readValue } from "./config/values.js";
import type { Engine, EngineSettings } from "./engine/api.js";
import { createEngine } from "./engine/engine.js";
import { JobtableError, LedgerError } from "./job/errors.js";
import type { Ledger } from "./ledger/ledger.js";
import type { MigrationPlan } from "./ledger/migration-plan.js";
import type { Within } from "./ledger/within.js";
import type { PlansHere } from "./plan/asked.js";
import { systemClock, type Clock } from "./runtime/clock.js";
import { silentLogger, type Logger } from "./runtime/logger.js";
import type { TaskRegistry } from "./task/registry.js";

export interface LedgerPorts {
  readonly clock?: Clock;
  readonly logger: Logger;
  /** False, for who only looks: the ledger must be there. Default: it is made where it is missing. */
  readonly create?: boolean;
}

/** A store that is named, taken apart. */
type Store =
  | { readonly kind: "memory" }
  | { readonly kind: "sqlite"; readonly path: string }
  | { readonly kind: "postgres"; readonly url: string };

/**
 * @param store `memory`, `sqlite:PATH` or `postgres://USER@HOST/DATABASE?schema=NAME`.
 * @throws JobtableError `invalid_config` for any other store; a `LedgerError` when it can't be opened,
 * `ledger_missing` when it must be there and is not.
 */
export async function openLedger(store: string, ports: LedgerPorts): Promise<Ledger> {
  return (await openStore(store, ports)).ledger;
}

async function openStore(
  store: string,
  { clock = systemClock, logger, create = true }: LedgerPorts,
): Promise<{ readonly ledger: Ledger; readonly within: Within }> {
  const named = storeOf(store);
  switch (named.kind) {
    case "memory": {
      if (!create)
        throw new LedgerError(
          "ledger_missing",
          "store memory: there is nothing to look at, since it lives within one process: name a SQLite file or a PostgreSQL database",
        );
      const { openMemoryLedger } = await import("./ledger/memory/memory-ledger.js");
      return { ledger: openMemoryLedger({ clock }), within: notWithin };
    }
    case "sqlite": {
      const { openSqliteLedger } = await import("./ledger/sqlite/sqlite-ledger.js");
      const ledger = await openSqliteLedger({ path: named.path, create, clock, logger });
      return { ledger, within: notWithin };
    }
    case "postgres": {
      const { openPostgresLedger } = await import("./ledger/postgres/postgres-ledger.js");
      const ledger = await openPostgresLedger({ url: named.url, create, clock, logger });
      return { ledger, within: ledger.within };
    }
    default:
      return named satisfies never;
  }
}

const notWithin: Within = () => {
  throw new JobtableError(
    "invalid_config",
    "client: only with a PostgreSQL store can a job be submitted within a transaction of yours",
  );
};

/**
 * What opening this store would run to make it or to bring it up to date; it changes nothing.
 * @throws as `openLedger`; `ledger_newer` where it is ahead of this version.
 */
export async function migrations(
  store: string,
  { logger = silentLogger }: { readonly logger?: Logger } = {},
): Promise<MigrationPlan> {
  const named = storeOf(store);
  switch (named.kind) {
    case "memory":
      return { from: 0, to: 0, statements: [] };
    case "sqlite": {
      const { plannedMigrations } = await import("./ledger/sqlite/planning.js");
      return plannedMigrations(named.path);
    }
    case "postgres": {
      const { plannedMigrations } = await import("./ledger/postgres/planning.js");
      return plannedMigrations(named.url, logger);
    }
    default:
      return named satisfies never;
  }
}

/** @throws JobtableError `invalid_config` */
function storeOf(store: string): Store {
  if (store === "memory") return { kind: "memory" };
  const path = /^sqlite:(.+)$/s.exec(store)?.[1];
  if (path !== undefined) return { kind: "sqlite", path };
  if (/^postgres(ql)?:/.test(store)) return { kind: "postgres", url: store };
  throw new JobtableError(
    "invalid_config",
    `store: expected memory, sqlite:PATH or postgres://USER@HOST/DATABASE, got ${withoutPassword(store)}`,
  );
}

export interface OpenOptions {
  /** Default: the setting's. */
  readonly store: string | undefined;
  readonly tasks: TaskRegistry;
  /** In ms; what is left out has the setting's default. */
  readonly settings: Partial<EngineSettings>;
  /** Default: silent. */
  readonly logger: Logger | undefined;
  /** Whether this process claims and runs jobs. */
  readonly worker: boolean;
  /** Whether its worker runs plans. Default: false. */
  readonly plans?: boolean;
  /** Default: the system's. */
  readonly clock?: Clock;
}

/**
 * A ledger and an engine on it, for a program; `within` submits in a transaction of the program's own
 * where the store is PostgreSQL, and throws `invalid_config` where it is not. Settings are not read from
 * the environment; the steps of plans find it as it is.
 * @throws JobtableError `invalid_config`; a `LedgerError` when the store can't be opened.
 */
export async function openEngine(options: OpenOptions): Promise<OpenedEngine> {
  const { tasks, worker, logger = silentLogger, clock = systemClock } = options;
  const { store = SETTINGS.store.default } = options;
  const settings = completeSettings(options.settings, store === "memory");
  const { ledger, within } = await openStore(store, { logger, clock });
  const stallGuard = stallGuardOn(store, logger);
  const ports = { ledger, tasks, settings, logger, clock };
  const env = processEnvironment();
  const isPlanner = worker && options.plans === true;
  const modules = isPlanner ? await import("./compose/plans.js") : null;
  const plans = modules?.planWork({ ...ports, env });
  const engine = createEngine({ ...ports, ...plans?.parts, worker, stallGuard });
  return {
    ledger,
    within,
    engine,
    plans: async () => (await import("./compose/plans.js")).openPlans({ ...ports, env, engine }),
    sweepPlans: plans === undefined ? null : () => plans.sweep(),
  };
}

export interface OpenedEngine {
  readonly engine: Engine;
  readonly ledger: Ledger;
  readonly within: Within;
  readonly plans: () => Promise<PlansHere>;
  /** To be called once the engine has started; null where it runs no plans. */
  readonly sweepPlans: PlanWork["sweep"] | null;
}

/** @throws JobtableError `invalid_config` that names the option and what it takes. */
function completeSettings(given: Partial<EngineSettings>, inMemory: boolean): EngineSettings {
  const left = new Map<string, unknown>(Object.entries(given));
  const setting = (name: EngineSetting): number => {
    const { key } = settingRow(name);
    const value = left.get(key);
    left.delete(key);
    return value === undefined ? presetOf(name, inMemory) : checked(name, value);
  };
  const settings: EngineSettings = {
    asyncTimeoutMs: setting("async_timeout"),
    asyncMaxQueue: setting("async_max_queue"),
    asyncJobTtlMs: setting("async_job_ttl"),
    asyncMaxCompleted: setting("async_max_completed"),
    maxWorkers: setting("max_workers"),
    pollIntervalMs: setting("poll_interval"),
    jobTimeoutMs: setting("job_timeout"),
    workerTimeoutMs: setting("worker_timeout"),
    modelRunTimeoutMs: setting("model_run_timeout"),
    maxQueueDepth: setting("max_queue_depth"),
    cancelGraceMs: setting("cancel_grace"),
    shutdownTimeoutMs: setting("shutdown_timeout"),
  };
  for (const [option, value] of left)
    if (value !== undefined)
      throw new JobtableError("invalid_config", `unknown option ${JSON.stringify(option)}`);
  return settings;
}

/** The settings that count something or last for some time. */
type EngineSetting = {
  [Name in SettingName]: (typeof SETTINGS)[Name]["kind"] extends "integer" | "duration"
    ? Name
    : never;
}[SettingName];

function presetOf(name: EngineSetting, inMemory: boolean): number {
  const row = SETTINGS[name];
  if (row.kind === "duration") return row.unit === "s" ? row.default * 1_000 : row.default;
  return inMemory && "defaultInMemory" in row ? row.defaultInMemory : row.default;
}

/** Options of the library are in ms where their name ends so. */
function checked(name: EngineSetting, value: unknown): number {
  const row = settingRow(name);
  const reading = readValue(row, row.kind === "duration" ? `${String(value)}ms` : value);
  if (reading.kind === "read" && typeof value === "number") return value;
  const expected = reading.kind === "wrong" ? reading.expected : "a number";
  throw new JobtableError(
    "invalid_config",
    `option ${row.key}: expected ${expected}, got ${String(value)}`,
  );
}

/** A mistyped URL may carry a password, and messages are logged. */
function withoutPassword(store: string): string {
  return JSON.stringify(store.replace(/\/\/([^@/]*)@/, "//***@"));
}
