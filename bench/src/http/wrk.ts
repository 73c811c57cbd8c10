/** HTTP load by wrk: one POST body from 32 connections. */
import { execFile, spawnSync } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { Missing } from "../missing.js";

const CONNECTIONS = 32;

export interface Load {
  readonly requests: number;
  readonly perSecond: number;
  readonly p99Ms: number;
}

/** @throws Missing */
export function needWrk(): void {
  // wrk prints its version with exit code 1; what matters is whether it could be started.
  if (spawnSync("wrk", ["--version"]).error !== undefined)
    throw new Missing("wrk on the PATH (Debian: apt-get install wrk)");
}

/** @throws when a request was refused or broke, since then the figures mean nothing. */
export async function load(url: string, seconds: number): Promise<Load> {
  // Scripts are not compiled: they stand beside the source.
  const script = join(import.meta.dirname, "../../src/http/post.lua");
  const { stdout } = await promisify(execFile)("wrk", [
    "-t1",
    `-c${String(CONNECTIONS)}`,
    `-d${String(seconds)}s`,
    "-s",
    script,
    `${url}/jobs`,
  ]);
  const [requests = 0, perSecond = 0, p99Ms = 0, refused = 0, broken = 0] = (
    /RES (.*)/.exec(stdout)?.[1] ?? ""
  )
    .split(" ")
    .map(Number);
  if (requests === 0 || refused + broken > 0)
    throw new Error(`${url}: ${String(refused)} refused, ${String(broken)} broken:\n${stdout}`);
  return { requests, perSecond, p99Ms };
}
