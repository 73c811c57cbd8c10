/**
 * Cancelling from one process what another one runs, in every state, with the settings as they come:
 * how it is answered, how soon a waiter elsewhere hears of the end, what is counted, and that the
 * slot is there for the next job.
 */
import { resolve } from "node:path";
import { performance } from "node:perf_hooks";
import { expect, test } from "vitest";
import { run, scratch, serve, type Server } from "./server.js";
import { NEW_STORE } from "./stores.js";

const INLINE = resolve(import.meta.dirname, "tasks/act-inline.ts");
const GRACE_MS = 300;
/** On a quiet machine it takes some 50 ms. The next heartbeat, which brings the news too, takes ten seconds. */
const SOON_MS = 1_000;

interface Victim {
  readonly task: "act" | "act-inline";
  readonly input: Readonly<Record<string, unknown>>;
  /** Behind a job that holds the only slot. */
  readonly waits?: boolean;
  /** How long it goes on after it was told to stop. */
  readonly graceMs?: number;
}

const HELD: Victim = { task: "act", input: { hold: true } };
const VICTIMS: Readonly<Record<string, Victim>> = {
  "one that waits": { task: "act", input: {}, waits: true },
  "one that runs inline": { task: "act-inline", input: { hold: true } },
  "one that runs in a thread": HELD,
  "a deaf one, inline": { task: "act-inline", input: { deaf: true }, graceMs: GRACE_MS },
  "a deaf one, in a thread": { task: "act", input: { deaf: true }, graceMs: GRACE_MS },
  "one that spins in its thread": { task: "act", input: { spin: true }, graceMs: GRACE_MS },
};

test.each(Object.entries(NEW_STORE))(
  "%s: a job in another process is cancelled at once, whatever it does, and counted so",
  async (_, newStore) => {
    const cwd = scratch();
    const store = newStore();
    const args = [INLINE, "--store", store, "--cancel-grace", `${String(GRACE_MS)}ms`];
    const [here, there] = await Promise.all([
      serve([...args, "--no-worker"], { cwd }),
      serve([...args, "--max-workers", "1"], { cwd }),
    ]);
    const took: Record<string, number> = {};
    for (const [name, victim] of Object.entries(VICTIMS)) {
      took[`DELETE: ${name}`] = await cancelled(here, victim, async (jobId) => {
        const fromMs = performance.now();
        const { status, json } = await here.call("DELETE", `/jobs/${jobId}`);
        expect(status).toBe(victim.waits === true ? 200 : 202);
        return { json, fromMs };
      });
      // What a deaf one does does not depend on who cancels it.
      if (victim.graceMs !== undefined) continue;
      took[`jobs cancel: ${name}`] = await cancelled(here, victim, async (jobId) => {
        const command = ["jobs", "cancel", jobId, "--json", "--store", store];
        const { code, stdout } = await run(command, { cwd });
        expect(code).toBe(0);
        // It takes its time to start and to end; what it did is done by now.
        return { json: JSON.parse(stdout) as unknown, fromMs: performance.now() };
      });
    }
    expect(Object.entries(took).filter(([, ms]) => ms > SOON_MS)).toEqual([]);
    await countedAsCancelled(here, there, store, cwd);
  },
);

interface Cancel {
  readonly json: unknown;
  /** From when on it counts. */
  readonly fromMs: number;
}

/** Runs the victim, cancels it, and sees that all is as it should be. @returns when its end was known here, ms after the cancel. */
async function cancelled(
  here: Server,
  victim: Victim,
  cancel: (jobId: string) => Promise<Cancel>,
): Promise<number> {
  const { task, input, waits = false, graceMs = 0 } = victim;
  const blocker = waits ? await started(here, HELD) : null;
  const jobId = waits ? await here.submit(input, { task }) : await started(here, victim);
  const end = here.ended(jobId).then((seen) => ({ seen, atMs: performance.now() }));
  const { json, fromMs } = await cancel(jobId);
  expect(json).toEqual({ job_id: jobId, state: waits ? "cancelled" : "running" });
  const { seen, atMs } = await end;
  expect(seen).toMatchObject({ state: "cancelled" });
  expect((await here.call("DELETE", `/jobs/${jobId}`)).status).toBe(409);
  if (blocker !== null) {
    // Nobody else was harmed.
    expect((await here.call("GET", `/jobs/${blocker}`)).json).toMatchObject({ state: "running" });
    await here.call("DELETE", `/jobs/${blocker}`);
    expect(await here.ended(blocker)).toMatchObject({ state: "cancelled" });
  }
  const next = await here.submit({ say: "next" }, { task });
  expect(await here.ended(next)).toMatchObject({ state: "done" });
  return atMs - fromMs - graceMs;
}

/** The worker counts what it ended itself: the two that waited ended without it, the two that held its slot did not. */
async function countedAsCancelled(
  here: Server,
  there: Server,
  store: string,
  cwd: string,
): Promise<void> {
  const metrics = await (await fetch(`${there.url}/metrics`)).text();
  const ended = [
    ...metrics.matchAll(/^jobtable_jobs_total\{task="([^"]+)",status="([^"]+)"\} (\d+)$/gm),
  ];
  expect(ended.map(([, task, status, count]) => `${task} ${status} ${count}`).sort()).toEqual([
    "act cancelled 6",
    "act succeeded 6",
    "act-inline cancelled 3",
    "act-inline succeeded 3",
  ]);
  // A report makes the worker beat soon, and each beat writes its row.
  const last = await started(here, { task: "act", input: { hold: true, progress: 1 } });
  await expect
    .poll(async () => (await here.call("GET", `/jobs/${last}`)).json["progress"], {
      timeout: 10_000,
    })
    .toBe(1);
  const { stdout } = await run(["diagnostics", "--json", "--store", store], { cwd });
  expect(JSON.parse(stdout)).toMatchObject({
    workers: [{ pid: there.process.pid, processed: 9, failed: 0, cancelled: 9 }],
  });
}

/** @returns the id of a job that runs. */
async function started(server: Server, { task, input }: Victim): Promise<string> {
  const jobId = await server.submit(input, { task });
  expect(await server.until(jobId, "running")).toMatchObject({ state: "running" });
  return jobId;
}
