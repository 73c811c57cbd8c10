/**
 * Every process that a fault run starts, so that none outlives it, however the run ends: in order, by
 * a fault of its own, or by Ctrl-C.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { resolve } from "node:path";

const MAIN = resolve(import.meta.dirname, "../../../dist/cli/main.js");
const living = new Set<ChildProcess>();
let over = false;

/** What was set for whoever starts the run must not leak into what it starts. */
const ENV = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(JOBTABLE|CLEVERAGENTS)_/.test(name)),
);

export interface ChildOptions {
  /** Of Node. */
  readonly nodeArgs?: readonly string[];
  /** Of the command line. */
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  /** The file that standard error is added to. */
  readonly log: string;
}

/** Starts the built command line. */
export function startChild({ nodeArgs = [], args, cwd, env, log }: ChildOptions): ChildProcess {
  const stderr = openSync(log, "a");
  try {
    const child = spawn(process.execPath, [...nodeArgs, MAIN, ...args], {
      cwd,
      env: { ...ENV, ...env },
      stdio: ["ignore", "pipe", stderr],
    });
    living.add(child);
    child.once("close", () => living.delete(child));
    // A script that goes on while the run is being ended starts nobody any more.
    if (over) child.kill("SIGKILL");
    return child;
  } finally {
    closeSync(stderr);
  }
}

/** Ends them at once, and those that are started from now on; SIGKILL reaches stopped ones too. */
export async function killAllChildren(): Promise<void> {
  over = true;
  await Promise.all(
    [...living].map((child) => {
      child.kill("SIGKILL");
      return new Promise((resolve) => child.once("close", resolve));
    }),
  );
}

process.once("exit", () => void killAllChildren());
