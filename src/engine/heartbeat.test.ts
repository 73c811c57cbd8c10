import { describe, expect, test } from "vitest";
import { openMemoryLedger } from "../ledger/memory/memory-ledger.js";
import { silentLogger } from "../runtime/logger.js";
import { VirtualClock } from "../../test/virtual-clock.js";
import { Batcher } from "./batcher.js";
import { Heartbeat } from "./heartbeat.js";
import { LedgerFaults } from "./ledger-faults.js";
import { OwnedJobs } from "./owned-jobs.js";

function setUp() {
  const clock = new VirtualClock();
  const ledger = openMemoryLedger({ clock });
  const heartbeat = new Heartbeat({
    ledger,
    clock,
    faults: new LedgerFaults(silentLogger),
    owned: new OwnedJobs(ledger, new Batcher((ids) => ledger.get(ids))),
    workerTimeoutMs: 30_000,
    jobTimeoutMs: 30_000,
    describe: () => ({
      workerId: "worker-0000beef",
      host: "here",
      pid: 1,
      pidStamp: "",
      state: "running",
      tasks: [],
      maxWorkers: 1,
      processed: 0,
      failed: 0,
      cancelled: 0,
    }),
  });
  return { clock, ledger, heartbeat };
}

describe("after its stop a heartbeat", () => {
  test("does not bring back a worker that has left", async () => {
    const { clock, ledger, heartbeat } = setUp();
    await heartbeat.start();
    expect(await heartbeat.beat()).toBe(true);
    await heartbeat.stop();
    await ledger.leave("worker-0000beef");
    heartbeat.progressed();
    expect(await heartbeat.beat()).toBe(false);
    await clock.advance(60_000);
    expect(await ledger.workers()).toEqual([]);
  });

  test("sends no beat that was asked for during the last one", async () => {
    const { ledger, heartbeat } = setUp();
    await heartbeat.start();
    const under = heartbeat.beat();
    const next = heartbeat.beat();
    await heartbeat.stop();
    expect(await under).toBe(true);
    expect(await next).toBe(false);
    await ledger.leave("worker-0000beef");
    expect(await ledger.workers()).toEqual([]);
  });

  test("does not go on, if its first beat was answered only then", async () => {
    const { clock, heartbeat } = setUp();
    const starting = heartbeat.start();
    await heartbeat.stop();
    await starting;
    expect(clock.pendingTimers).toBe(0);
  });
});
