/** HTTP submits: `POST /jobs` answered 202 only when the job is on disk, against Fastify alone. */
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const here = import.meta.dirname;
const CONNECTIONS = 32;

export interface HttpFigures {
  readonly requestsPerSecond: number;
  readonly p99Ms: number;
}

/** One load of `seconds` from 32 connections; throws when a request was refused or broke, since then the figure means nothing. */
function load(url: string, seconds: number): HttpFigures {
  const output = execFileSync(
    "wrk",
    [
      "-t1",
      `-c${String(CONNECTIONS)}`,
      `-d${String(seconds)}s`,
      "-s",
      join(here, "post.lua"),
      `${url}/jobs`,
    ],
    { encoding: "utf8" },
  );
  const [rate = 0, , p99 = 0, refused = 0, broken = 0] = (/RES (.*)/.exec(output)?.[1] ?? "")
    .split(" ")
    .map(Number);
  if (rate === 0 || refused + broken > 0)
    throw new Error(`${url}: ${String(refused)} refused, ${String(broken)} broken:\n${output}`);
  return { requestsPerSecond: rate, p99Ms: p99 };
}

export function hasLoadGenerator(): boolean {
  try {
    execFileSync("wrk", ["--version"], { stdio: "ignore" });
    return true;
  } catch (error) {
    // wrk prints its version with exit code 1; what matters is whether it could be started.
    return (error as NodeJS.ErrnoException).code !== "ENOENT";
  }
}

/** Starts a server that prints its address; answers the address and how to stop it. */
async function start(args: readonly string[]): Promise<{ url: string; stop(): Promise<void> }> {
  const child: ChildProcess = spawn(process.execPath, args, {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const url = await new Promise<string>((resolve, reject) => {
    let text = "";
    child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      const found = /http:\/\/127\.0\.0\.1:\d+/.exec(text);
      if (found) resolve(found[0]);
    });
    child.once("exit", (code) => {
      reject(new Error(`${args.join(" ")} exited with ${String(code)} before it listened`));
    });
  });
  return {
    url,
    async stop() {
      const gone = once(child, "exit");
      child.kill("SIGTERM");
      await gone;
    },
  };
}

export async function floorRate(seconds: number): Promise<number> {
  const server = await start([join(here, "floor-server.mjs")]);
  try {
    load(server.url, 1);
    return load(server.url, seconds).requestsPerSecond;
  } finally {
    await server.stop();
  }
}

/** @param store `memory` or `sqlite`; a fresh file each time. */
export async function submitRate(store: "memory" | "sqlite", seconds: number): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "jobtable-bench-"));
  const server = await start([
    join(here, "../dist/cli/main.js"),
    "serve",
    join(here, "tasks/noop.mjs"),
    "--no-worker",
    "--port=0",
    `--store=${store === "memory" ? "memory" : `sqlite:${join(folder, "bench.db")}`}`,
    "--async-max-queue=100000000",
    "--async-timeout=0",
    "--log-level=warn",
  ]);
  try {
    load(server.url, 1);
    return load(server.url, seconds).requestsPerSecond;
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
