/** Servers in processes of their own: the product's command line, and our own that stand beside it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { track } from "../children.js";
import { nodeFor, type PeerName } from "../acting.js";
import type { Place } from "../peers/peer.js";

export interface Served {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

const BENCH = join(import.meta.dirname, "../..");
const PRODUCT = join(BENCH, "../dist/cli/main.js");
export const NOOP_TASK = join(BENCH, "tasks/noop.mjs");
/** Lets SIGUSR2 collect garbage, so that memory can be compared. */
export const WITH_GC = [
  "--expose-gc",
  "--import",
  join(import.meta.dirname, "../waiters/gc-on-signal.js"),
];

export function storeUrl({ url, folder }: Place): string {
  return url ?? `sqlite:${join(folder ?? ".", "jobs.db")}`;
}

/** `jobtable serve` at its defaults, the admission bound apart. @param nodeArgs for Node itself. */
export function serveProduct(
  place: Place,
  flags: readonly string[],
  nodeArgs: readonly string[] = [],
): Promise<Served> {
  return listening(process.execPath, [
    ...nodeArgs,
    PRODUCT,
    "serve",
    NOOP_TASK,
    "--port=0",
    `--store=${storeUrl(place)}`,
    "--async-max-queue=1000000000",
    "--log-level=warn",
    ...flags,
  ]);
}

/** `jobtable worker` at its defaults. */
export function workProduct(place: Place): { readonly pid: number; stop(): Promise<void> } {
  const args = [PRODUCT, "worker", NOOP_TASK, `--store=${storeUrl(place)}`, "--log-level=warn"];
  return running(process.execPath, args);
}

export function serveFront(peer: PeerName | "bare", place: Place): Promise<Served> {
  const front = join(import.meta.dirname, "front.js");
  return listening(nodeFor(peer), [front, peer, JSON.stringify(place)]);
}

function running(file: string, args: readonly string[]) {
  const child = track(spawn(file, args, { stdio: ["ignore", "pipe", "inherit"] }), "SIGTERM");
  const gone = once(child, "exit");
  return {
    child,
    pid: child.pid ?? 0,
    async stop(): Promise<void> {
      if (child.exitCode === null) child.kill("SIGTERM");
      await gone;
    },
  };
}

/** A process that prints its address on loopback. */
export async function listening(file: string, args: readonly string[]): Promise<Served> {
  const started = running(file, args);
  const { child, pid } = started;
  const url = await new Promise<string>((resolve, reject) => {
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      const found = /http:\/\/127\.0\.0\.1:\d+/.exec(text);
      if (found) resolve(found[0]);
    });
    child.once("exit", (code) => {
      reject(new Error(`${args.join(" ")} ended with ${String(code)} before it listened`));
    });
  });
  return { url, pid, stop: () => started.stop() };
}

/** One figure of the product's metrics. @param series as it stands there, labels included. */
export async function metric(server: Served, series: string): Promise<number> {
  const text = await (await fetch(`${server.url}/metrics`)).text();
  const found = text.split("\n").find((line) => line.startsWith(`${series} `));
  return found === undefined ? 0 : Number(found.slice(series.length + 1));
}
