/**
 * `npm run faults`: plays every scenario on every store, one after the other, and prints a block for
 * each. The exit code is 1 when any books do not balance. On Ctrl-C everything that was started ends,
 * and this process with the signal.
 */
import { randomInt } from "node:crypto";
import { inspect } from "node:util";
import { keepAlive } from "../../src/runtime/keep-alive.js";
import { cleanUp } from "./clean-up.js";
import { readOptions, USAGE, type FaultsOptions } from "./options.js";
import { killAllChildren } from "./processes/children.js";
import { report } from "./report.js";
import { run } from "./run.js";
import type { Scenario } from "./scenario.js";
import { SmallDisk } from "./stores/small-disk.js";
import type { StoreKind } from "./stores/store.js";

const WAITERS = 300;
/** One in so many jobs is submitted from the shell, within limits: a command takes a second to start. */
const SHELL_EVERY = 1_000;
const MOST_SHELL_JOBS = 10;

function say(text: string): void {
  process.stdout.write(`${text}\n\n`);
}

/** Whether the books balance. */
async function play(
  scenario: Scenario,
  kind: StoreKind,
  { jobs, seed }: FaultsOptions,
): Promise<boolean> {
  const leftOut = scenario.leftOut[kind] ?? lacking(scenario);
  if (leftOut !== null) {
    say(`${scenario.name} on ${kind}: left out: ${leftOut}`);
    return true;
  }
  const share = scenario.shareOfJobs?.[kind] ?? 1;
  const all = Math.round(jobs * share);
  const shellJobs = Math.min(MOST_SHELL_JOBS, Math.ceil(all / SHELL_EVERY));
  const outcome = await run({
    scenario,
    kind,
    seed,
    jobs: all,
    brief: false,
    shellJobs,
    waiters: WAITERS,
  });
  say(report(outcome));
  return outcome.faults.length === 0;
}

/** Why this machine can't have it played, or null. */
function lacking({ shape }: Scenario): string | null {
  return shape.diskMb === undefined ? null : SmallDisk.lacking();
}

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2), randomInt(2 ** 31));
  say(`seed ${String(options.seed)}, ${options.jobs.toLocaleString("en-US")} jobs each`);
  let balanced = true;
  for (const kind of options.kinds)
    for (const scenario of options.scenarios)
      balanced = (await play(scenario, kind, options)) && balanced;
  process.exitCode = balanced ? 0 : 1;
}

function endWith(signal: NodeJS.Signals): void {
  void killAllChildren()
    .then(cleanUp)
    .then(() => process.kill(process.pid, signal));
}

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, endWith);

// Timers of the product's clock do not.
const release = keepAlive();
try {
  await main();
} catch (error) {
  process.stderr.write(`faults: ${inspect(error)}\n${USAGE}\n`);
  process.exitCode = 1;
} finally {
  release();
}
