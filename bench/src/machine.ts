/** On what a run was made: the versions of everything, and the machine with its disk. */
import { execFileSync } from "node:child_process";
import {
  closeSync,
  fdatasyncSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeSync,
} from "node:fs";
import { createRequire } from "node:module";
import { cpus, release, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { nodeFor } from "./acting.js";
import { median, nowMs } from "./measure.js";
import { redisVersion } from "./servers/redis.js";

const PEERS = ["bullmq", "graphile-worker", "ioredis", "pg-boss", "plainjob"];
const ROOT = join(import.meta.dirname, "../..");

export function versions(postgres: string | null): Record<string, string> {
  const of = (folder: string): string =>
    (JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { version: string }).version;
  const database = new Database(":memory:");
  const sqlite = String(database.prepare("select sqlite_version()").pluck().get());
  database.close();
  const newer = execFileSync(nodeFor("pg-boss"), ["--version"], { encoding: "utf8" }).trim();
  return {
    jobtable: of(ROOT),
    ...Object.fromEntries(PEERS.map((name) => [name, of(join(ROOT, "bench/node_modules", name))])),
    fastify: (createRequire(import.meta.url)("fastify/package.json") as { version: string })
      .version,
    node: process.version,
    "node of pg-boss and graphile-worker": newer,
    postgresql: postgres ?? "not started",
    redis: redisVersion() ?? "not installed",
    sqlite,
  };
}

export function machine(): Record<string, string | number> {
  return {
    cpu: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${process.platform} ${release()}`,
    fdatasyncMs: Number(fdatasyncMs().toFixed(3)),
    at: new Date().toISOString(),
  };
}

/** What the disk under the temporary folder takes for 4 KiB; near 0 means that nothing there is durable. */
function fdatasyncMs(): number {
  const folder = mkdtempSync(join(tmpdir(), "jobtable-bench-"));
  const file = openSync(join(folder, "probe"), "w");
  const page = Buffer.alloc(4_096, 1);
  const taken = Array.from({ length: 50 }, () => {
    writeSync(file, page);
    const began = nowMs();
    fdatasyncSync(file);
    return nowMs() - began;
  });
  closeSync(file);
  rmSync(folder, { recursive: true, force: true });
  return median(taken);
}
