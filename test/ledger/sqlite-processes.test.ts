/** What can only be seen with processes: kill -9, several writers of one file, news from elsewhere. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Ledger } from "../../src/ledger/ledger.js";
import { openSqliteLedger } from "../../src/ledger/sqlite/sqlite-ledger.js";
import { systemClock } from "../../src/runtime/clock.js";
import { silentLogger } from "../../src/runtime/logger.js";
import { newJob } from "./acts.js";
import { FAST_FOLDER } from "./sqlite-factory.js";

const CHILD = resolve(import.meta.dirname, "sqlite-child.mjs");
const DIST = resolve(import.meta.dirname, "../../dist");
/** How long processes live jobs; JOBTABLE_TEST_STRESS_MS=60000 makes it a minute. */
const LIVES_MS = Number(process.env["JOBTABLE_TEST_STRESS_MS"] ?? 0);
const BOUND = { maxDepth: 1_000_000 };

let folder: string;
let path: string;
const ledgers: Ledger[] = [];
const children: ChildProcess[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(FAST_FOLDER, "jobtable-processes-"));
  path = join(folder, "jobs.db");
});

afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  await Promise.all(ledgers.splice(0).map((ledger) => ledger.close()));
  rmSync(folder, { recursive: true });
});

async function open(): Promise<Ledger> {
  const ledger = await openSqliteLedger({ path, clock: systemClock, logger: silentLogger });
  ledgers.push(ledger);
  return ledger;
}

function start(role: string, argument = "") {
  const child = spawn(process.execPath, [CHILD, DIST, role, path, argument], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  children.push(child);
  return child;
}

/** What the child said, once it has ended in order; its complaints are the failure otherwise. */
async function end(child: ReturnType<typeof start>): Promise<string> {
  const [said, complaints] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "exit"),
  ]);
  expect({ code: child.exitCode, complaints }).toEqual({ code: 0, complaints: "" });
  return said.trim();
}

test("kill -9: every job that was answered is there afterwards, and the counts agree", async () => {
  const child = start("submit");
  const answered: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    answered.push(line);
    if (answered.length === 200) child.kill("SIGKILL");
  }
  const ledger = await open();
  expect(answered.length).toBeGreaterThanOrEqual(200);
  for (let at = 0; at < answered.length; at += 1_000)
    expect(await ledger.get(answered.slice(at, at + 1_000))).not.toContain(null);
  const { queued, total } = await ledger.counts();
  expect(queued).toBe(total);
  expect(total).toBeGreaterThanOrEqual(answered.length);
});

test(
  "four processes live jobs on one file: no error, every job ends once",
  { timeout: 60_000 + 4 * LIVES_MS },
  async () => {
    const all = Array.from({ length: 4 }, () => end(start("live", String(LIVES_MS))));
    const said = (await Promise.all(all)).map((line) => line.split(" ").map(Number));
    const sum = (column: number): number =>
      said.reduce((total, counts) => total + (counts[column] ?? NaN), 0);
    const [submitted, ends] = [sum(0), sum(1)];
    expect(submitted).toBeGreaterThanOrEqual(800);
    const ledger = await open();
    const { queued, running, total } = await ledger.counts();
    expect({ total, running }).toEqual({ total: submitted, running: 0 });
    expect(ends).toBe(submitted - queued);
    let succeeded = 0;
    let cursor: string | undefined;
    do {
      const page = await ledger.list({
        statuses: ["succeeded"],
        limit: 1_000,
        ...(cursor === undefined ? {} : { cursor }),
      });
      succeeded += page.jobs.length;
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    expect(succeeded).toBe(ends);
  },
);

test("a running job that another process cancels: its watcher hears of it", async () => {
  const ledger = await open();
  const job = newJob();
  await ledger.submit([job], BOUND);
  await ledger.claim({ workerId: "worker-0000000a", tasks: [job.task], limit: 1 });
  const requested = new Promise<void>((resolve, reject) => {
    ledger.watch(job.jobId, () => {
      ledger.get([job.jobId]).then(([seen]) => {
        if (seen?.cancelRequestedAtMs !== null) resolve();
      }, reject);
    });
  });
  expect(await end(start("cancel", job.jobId))).toBe("requested");
  await requested;
  expect(await ledger.get([job.jobId])).toMatchObject([{ status: "running" }]);
});
