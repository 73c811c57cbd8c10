import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { openLedger } from "../compose.js";
import type { StallGuard } from "../engine/stall-guard.js";
import type { Ledger, WorkerBeat } from "../ledger/ledger.js";
import { systemClock } from "../runtime/clock.js";
import { silentLogger, type LogFields } from "../runtime/logger.js";
import { stallGuardOn } from "./stall-guard.js";

const ROW: WorkerBeat = {
  workerId: "worker-0000aaaa",
  host: "host",
  pid: process.pid,
  pidStamp: "",
  state: "running",
  tasks: ["spin"],
  maxWorkers: 1,
  processed: 3,
  failed: 0,
  cancelled: 0,
};

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** This thread does nothing at all for a while: no timer fires, no message is read. */
function heldUp(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

async function guarded(workerTimeoutMs: number, jobTimeoutMs = 60_000) {
  const folder = await mkdtemp(join(tmpdir(), "jobtable-guard-"));
  closers.push(() => rm(folder, { recursive: true }));
  const store = `sqlite:${join(folder, "jobs.db")}`;
  const ledger = await openLedger(store, { logger: silentLogger });
  closers.push(() => ledger.close());
  await ledger.heartbeat(ROW, []);
  const told: LogFields[] = [];
  let tell: () => void = () => undefined;
  const warned = new Promise<void>((resolve) => (tell = resolve));
  const logger = {
    ...silentLogger,
    warn: (fields: LogFields) => {
      told.push(fields);
      tell();
    },
  };
  const guard = stallGuardOn(store, logger)?.({ workerTimeoutMs, jobTimeoutMs });
  if (guard === undefined) throw new Error("no guard");
  closers.push(() => guard.stop());
  guard.known({ ...ROW, processed: 4 });
  await guard.ready;
  return { ledger, guard, told, warned };
}

const beatMs = async (ledger: Ledger): Promise<number> =>
  (await ledger.workers())[0]?.lastHeartbeatMs ?? NaN;

/** Holds this thread up until the guard has beaten: it may be slow to start on a busy machine. */
async function coveredFor(ledger: Ledger, ms: number): Promise<number> {
  for (let round = 0; round < 20; round += 1) {
    const startMs = systemClock.nowMs();
    heldUp(ms);
    const lastMs = await beatMs(ledger);
    if (lastMs >= startMs) return lastMs - startMs;
  }
  throw new Error("the guard never beat");
}

describe("the stall guard", () => {
  test.each([
    ["opens the ledger ahead where there is no time", 900, 700],
    ["opens it at need where there is", 10_000, 6_500],
  ])("beats for the worker while its thread is held up: %s", async (_, workerTimeoutMs, ms) => {
    const { ledger, told, warned } = await guarded(workerTimeoutMs);
    expect(await coveredFor(ledger, ms)).toBeGreaterThan(workerTimeoutMs / 4);
    expect(await ledger.workers()).toMatchObject([{ ...ROW, processed: 4 }]);
    await warned;
    expect(told[0]).toMatchObject({ beats: expect.any(Number) as number });
  });

  test("says nothing while the thread is alive, nor after its stop", async () => {
    const { ledger, guard, told } = await guarded(300);
    const before = await beatMs(ledger);
    // Twice as long as would do: what does not happen can't be waited for.
    await new Promise<void>((resolve) => {
      systemClock.timer(600, resolve);
    });
    expect(await beatMs(ledger)).toBe(before);
    await guard.stop();
    await guard.stop();
    await ledger.leave(ROW.workerId);
    heldUp(600);
    expect(await ledger.workers()).toEqual([]);
    expect(told).toEqual([]);
  });

  test("gives up on what is held up for longer than job_timeout", async () => {
    const { ledger } = await guarded(600, 500);
    const startMs = systemClock.nowMs();
    heldUp(1_500);
    expect((await beatMs(ledger)) - startMs).toBeLessThan(1_000);
  });

  test("is not there for a store that nobody else can see", () => {
    const start: ((limits: never) => StallGuard) | undefined = stallGuardOn("memory", silentLogger);
    expect(start).toBeUndefined();
  });
});
