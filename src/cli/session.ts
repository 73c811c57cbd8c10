/** The ledger for a command that works on the store itself and ends: opened, used, closed. It runs no jobs. */
import { openLedger } from "../compose.js";
import { createEngine } from "../engine/engine.js";
import type { Config } from "../config/settings.js";
import type { Engine } from "../engine/api.js";
import type { Ledger } from "../ledger/ledger.js";
import { createLogger, type Logger } from "../runtime/logger.js";
import { createTaskRegistry, type RegisteredTask } from "../task/registry.js";
import { misuse } from "./exit-code.js";
import type { Invocation } from "./verb.js";

export interface Session {
  readonly ledger: Ledger;
  /** Without a worker, and never started: it checks, records, looks and waits. */
  readonly engine: Engine;
}

export interface SessionOptions {
  /** What may be submitted. */
  readonly tasks: readonly RegisteredTask[];
  /** Whether a store that is not there is made. One that only looks would hide a mistyped path. */
  readonly create: boolean;
}

export async function withLedger<Answer>(
  invocation: Pick<Invocation, "config" | "settings">,
  { tasks, create }: SessionOptions,
  use: (session: Session) => Promise<Answer>,
): Promise<Answer> {
  const { config } = invocation;
  refuseMemory(config);
  const logger = quietLogger(invocation);
  const ledger = await openLedger(config.store, { logger, create });
  try {
    const engine = createEngine({
      ledger,
      tasks: createTaskRegistry(tasks),
      settings: config,
      logger,
      worker: false,
    });
    try {
      return await use({ ledger, engine });
    } finally {
      await engine.stop();
    }
  } finally {
    await ledger.close();
  }
}

/** @throws JobtableError where other processes can't reach the store. */
export function refuseMemory({ store }: Config): void {
  if (store === "memory")
    throw misuse(
      "setting store: memory lives inside one serving process; ask that server with --server, or give all processes one sqlite:PATH",
    );
}

/** A short command speaks through its answer; what it logs counts only from warnings on, unless asked for. */
export function quietLogger({ config, settings }: Pick<Invocation, "config" | "settings">): Logger {
  const asked = settings.some(
    ({ name, origin }) => name === "log_level" && origin.kind !== "default",
  );
  return createLogger(asked ? config.logLevel : "warn");
}
