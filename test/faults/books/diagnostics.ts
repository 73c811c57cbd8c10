/** What `jobtable diagnostics` says once all jobs have ended, and once all processes have. */
import type { Ledger } from "../../../src/ledger/ledger.js";
import { pause } from "../pause.js";
import type { Fleet } from "../processes/fleet.js";

interface Diagnostics {
  readonly depth: { readonly queued: number; readonly running: number };
  readonly workers: readonly { readonly worker_id: string; readonly state: string }[];
}

/** Lost workers leave the list with the next maintenance, a third of the worker timeout later. */
const TRIES = 200;
const PAUSE_MS = 100;

/** Nothing waits or runs, and the workers on the list are those that live, all of them. */
export async function diagnose(fleet: Fleet, ledger: Ledger): Promise<string[]> {
  await Promise.all(fleet.seats.map((seat) => seat.settled()));
  const living = (): number => fleet.workers.filter((seat) => seat.ready).length;
  for (let tries = 0; tries < TRIES; tries += 1) {
    if ((await ledger.workers()).length === living()) break;
    await pause(PAUSE_MS);
  }
  const { code, stdout } = await fleet.run(["diagnostics", "--json"]);
  if (code !== 0) return [`diagnostics ended with ${String(code)}`];
  const { depth, workers } = JSON.parse(stdout) as Diagnostics;
  const faults: string[] = [];
  if (depth.queued !== 0 || depth.running !== 0)
    faults.push(`diagnostics: ${JSON.stringify(depth)} with all jobs ended`);
  if (workers.length !== living() || workers.some(({ state }) => state !== "running"))
    faults.push(
      `diagnostics: ${String(living())} workers live, listed are ${JSON.stringify(workers.map(({ worker_id, state }) => [worker_id, state]))}`,
    );
  return faults;
}
