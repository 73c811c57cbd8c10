/** What `jobtable diagnostics` says once all jobs have ended, and once all processes have. */
import type { Fleet } from "../processes/fleet.js";
import { pause } from "../pause.js";

interface Diagnostics {
  readonly depth: { readonly queued: number; readonly running: number };
  readonly workers: readonly { readonly worker_id: string; readonly state: string }[];
}

/** Lost workers leave the list with the next maintenance, a third of the worker timeout later at most. */
const TRIES = 40;
const PAUSE_MS = 500;

/** Nothing waits or runs, and the workers on the list are those that live, all of them. */
export async function diagnose(fleet: Fleet, when: "running" | "stopped"): Promise<string[]> {
  let faults: string[] = [];
  for (let tries = 0; tries < TRIES; tries += 1) {
    faults = await look(fleet, when);
    if (faults.length === 0) return [];
    await pause(PAUSE_MS);
  }
  return faults;
}

async function look(fleet: Fleet, when: "running" | "stopped"): Promise<string[]> {
  const { code, stdout } = await fleet.run(["diagnostics", "--json"]);
  if (code !== 0) return [`diagnostics ended with ${String(code)}`];
  const { depth, workers } = JSON.parse(stdout) as Diagnostics;
  const faults: string[] = [];
  if (depth.queued !== 0 || depth.running !== 0)
    faults.push(`diagnostics: ${JSON.stringify(depth)} with all jobs ended`);
  const expected = when === "stopped" ? 0 : fleet.workers.filter((seat) => seat.ready).length;
  if (workers.length !== expected)
    faults.push(
      `diagnostics: ${String(workers.length)} workers listed with ${String(expected)} ${when === "stopped" ? "left" : "at work"}: ${workers.map(({ worker_id, state }) => `${worker_id} ${state}`).join(", ")}`,
    );
  return faults;
}
