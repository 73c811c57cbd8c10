/**
 * Opens the jobs for a command that asks or records something and ends: those of a server where one
 * is set, else those of the store, which is opened, used and closed. Neither runs jobs here. A store
 * in memory lives within one serving process, so that only a server can reach it.
 */
import { JobtableClient } from "../client/client.js";
import type { Jobs } from "../client/jobs.js";
import type { Origin } from "../config.js";
import type { Config, SettingName } from "../config/settings.js";
import { parseJobId } from "../job/id.js";
import { systemClock } from "../runtime/clock.js";
import { isLoopback } from "./address.js";
import { misuse } from "./exit-code.js";
import type { SessionOptions } from "./session.js";
import type { Invocation } from "./verb.js";

/** The settings of every command that asks a server or a store. */
export const JOBS_SETTINGS: readonly SettingName[] = ["server", "auth_token", "store", "log_level"];

export async function withJobs<Answer>(
  invocation: Pick<Invocation, "config" | "settings" | "terminal">,
  use: (jobs: Jobs) => Promise<Answer>,
  /** For a store; a server knows its own tasks. */
  options: SessionOptions = { tasks: [], create: false },
): Promise<Answer> {
  const server = serverOf(invocation);
  if (server !== null) {
    const { authToken: token } = invocation.config;
    if (token !== null && isOverheard(server))
      invocation.terminal.complain(
        `the token goes to ${server} unencrypted, for all on the way to read; give an https address`,
      );
    return use(new JobtableClient({ server, token }));
  }
  // What a store needs takes a while to load, and a server does without.
  const [{ withLedger }, { LedgerJobs }] = await Promise.all([
    import("./session.js"),
    import("./ledger-jobs.js"),
  ]);
  return withLedger(invocation, options, ({ engine }) =>
    use(new LedgerJobs(engine, systemClock, invocation.config)),
  );
}

/** Whether what is sent there leaves this machine, and not encrypted. */
function isOverheard(server: string): boolean {
  const { protocol, hostname } = new URL(server);
  return protocol === "http:" && !isLoopback(hostname.replace(/^\[(.*)\]$/, "$1"));
}

/**
 * The server to ask, or null for the store: whichever was named closer to the command.
 * @throws JobtableError where both were named on the command line.
 */
export function serverOf({
  config,
  settings,
}: Pick<Invocation, "config" | "settings">): Config["server"] {
  const originOf = (name: SettingName): Origin["kind"] | undefined =>
    settings.find((setting) => setting.name === name)?.origin.kind;
  if (config.server === null || originOf("store") !== "flag") return config.server;
  if (originOf("server") === "flag")
    throw misuse("--server and --store: a command asks one of them; leave the other one out");
  return null;
}

/**
 * For a command that works on the store itself.
 * @throws JobtableError where a server is set: the store meant may be another one.
 */
export function refuseServer(
  invocation: Pick<Invocation, "config" | "settings">,
  command: string,
): void {
  const server = serverOf(invocation);
  if (server !== null)
    throw misuse(
      `${command} works on the store itself, not through ${server}; name the store with --store, and give no --server`,
    );
}

/** @throws JobtableError for text that can't be a job's id. */
export function jobIdFrom(text: string | undefined): string {
  if (text === undefined || parseJobId(text) === null)
    throw misuse(
      `${JSON.stringify(text)} is no job id; expected job_ and 26 characters, or those alone`,
    );
  return text;
}
