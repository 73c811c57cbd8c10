/** A Redis of our own: redis-server of the PATH, its own folder and port, its own defaults; `always`: each write on disk before its answer. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { track } from "../children.js";
import { Missing } from "../missing.js";
import { freePort } from "./free-port.js";

/** `memory`: as Redis comes, without fsync. */
export type RedisKind = "memory" | "always";

export interface Redis {
  readonly port: number;
  stop(): Promise<void>;
}

export function redisVersion(): string | null {
  const { stdout, status } = spawnSync("redis-server", ["--version"], { encoding: "utf8" });
  return status === 0 ? `Redis ${/v=([\d.]+)/.exec(stdout)?.[1] ?? ""}` : null;
}

export async function startRedis(kind: RedisKind): Promise<Redis> {
  if (redisVersion() === null)
    throw new Missing("redis-server on the PATH (Debian: apt-get install redis-server)");
  const folder = mkdtempSync(join(tmpdir(), "jobtable-bench-redis-"));
  const port = await freePort();
  const durable = kind === "always" ? ["--appendonly", "yes", "--appendfsync", "always"] : [];
  const server = spawn(
    "redis-server",
    ["--bind", "127.0.0.1", "--port", String(port), "--dir", folder, ...durable],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  track(server, "SIGTERM");
  const gone = once(server, "exit");
  const stop = async (): Promise<void> => {
    if (server.exitCode === null) server.kill("SIGTERM");
    await gone;
    rmSync(folder, { recursive: true, force: true });
  };
  const ready = new Promise<boolean>((resolve) => {
    let text = "";
    server.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      text = (text + chunk).slice(-4_000);
      if (text.includes("Ready to accept connections")) resolve(true);
    });
    void gone.then(() => resolve(false));
  });
  if (await ready) return { port, stop };
  await stop();
  throw new Error("redis-server ended before it was ready");
}
