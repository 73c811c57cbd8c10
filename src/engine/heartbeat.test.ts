import { describe, expect, test } from "vitest";
import { openMemoryLedger } from "../ledger/memory/memory-ledger.js";
import type { JobBeat, Ledger } from "../ledger/ledger.js";
import { silentLogger } from "../runtime/logger.js";
import { acceptOne } from "../../test/ledger/acts.js";
import { settled, VirtualClock } from "../../test/virtual-clock.js";
import { Batcher } from "./batcher.js";
import { Heartbeat } from "./heartbeat.js";
import { LedgerFaults } from "./ledger-faults.js";
import { OwnedJob, OwnedJobs } from "./owned-jobs.js";

const WORKER_ID = "worker-0000beef";
const WORKER_TIMEOUT_MS = 10_000;

/** @param way how a beat gets to the ledger. */
function setUp(way: (beat: Ledger["heartbeat"]) => Ledger["heartbeat"] = (beat) => beat) {
  const clock = new VirtualClock();
  const ledger = openMemoryLedger({ clock });
  const owned = new OwnedJobs(ledger, new Batcher((ids) => ledger.get(ids), clock));
  const faults = new LedgerFaults(silentLogger);
  const heartbeat = new Heartbeat({
    ledger: { heartbeat: way((worker, jobs) => ledger.heartbeat(worker, jobs)) },
    clock,
    faults,
    owned,
    workerTimeoutMs: WORKER_TIMEOUT_MS,
    jobTimeoutMs: 30_000,
    describe: () => ({
      workerId: WORKER_ID,
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
  return { clock, ledger, heartbeat, owned, faults };
}

/** A network that swallows the beats of these numbers; `deliver` lets them arrive after all. */
function swallowing(which: (n: number) => boolean) {
  const swallowed: (() => void)[] = [];
  const beatsOf: (readonly JobBeat[])[] = [];
  const way =
    (beat: Ledger["heartbeat"]): Ledger["heartbeat"] =>
    async (worker, jobs) => {
      if (which(beatsOf.push(jobs)))
        await new Promise<void>((resolve) => {
          swallowed.push(resolve);
        });
      return beat(worker, jobs);
    };
  return { way, beatsOf, swallowed };
}

describe("a beat that gets no answer", () => {
  test("F1: is followed by the next one in time, and its own late answer changes nothing", async () => {
    const { way, beatsOf, swallowed } = swallowing((n) => n === 2);
    const { clock, ledger, heartbeat, owned, faults } = setUp(way);
    await heartbeat.start();
    const job = await acceptOne(ledger, { task: "t" });
    const [claimed] = await ledger.claim({ workerId: WORKER_ID, tasks: ["t"], limit: 1 });
    if (claimed === undefined) throw new Error("nothing was claimed");
    const mine = new OwnedJob(claimed, WORKER_ID, clock.monotonicMs());
    owned.add(mine);
    mine.freshProgressJson = "1";
    for (let second = 0; second < 30; second += 1) {
      await clock.advance(1_000);
      const [worker] = await ledger.workers();
      expect(clock.nowMs() - (worker?.lastHeartbeatMs ?? 0)).toBeLessThan(WORKER_TIMEOUT_MS);
    }
    // What the lost one reported came with the next.
    expect(beatsOf.slice(1, 4).map(([beat]) => beat?.progressJson)).toEqual(["1", "1", undefined]);
    const sent = beatsOf.length;
    swallowed[0]?.();
    await clock.advance(heartbeat.intervalMs);
    expect(beatsOf.length).toBe(sent + 1);
    expect(faults.fault).toBeNull();
    expect(mine).toMatchObject({ lost: false, cancelled: false });
    expect((await ledger.get([job.jobId]))[0]).toMatchObject({ status: "running" });
    await heartbeat.stop();
  });

  test("is a fault when the next has none either, and none when it only comes late", async () => {
    const { way, beatsOf, swallowed } = swallowing((n) => n > 1);
    const { clock, heartbeat, faults } = setUp(way);
    await heartbeat.start();
    const nextDue = (): Promise<void> => clock.advance(Math.ceil(heartbeat.intervalMs));
    await nextDue();
    for (const slow of [0, 1, 2]) {
      await nextDue();
      expect(beatsOf.length).toBe(slow + 3);
      expect(faults.has("heartbeat")).toBe(false);
      swallowed[slow]?.();
      await settled();
      expect(heartbeat.lastBeatMs).toBe(clock.nowMs());
    }
    await nextDue();
    expect(faults.has("heartbeat")).toBe(false);
    await nextDue();
    expect(faults.has("heartbeat")).toBe(true);
    const stopping = heartbeat.stop();
    for (const answer of swallowed) answer();
    await stopping;
    expect(faults.has("heartbeat")).toBe(false);
  });

  test("does not use up the connections where none is answered, and goes on when they are", async () => {
    const { way, beatsOf, swallowed } = swallowing((n) => n > 1);
    const { clock, heartbeat, faults } = setUp(way);
    await heartbeat.start();
    await clock.advance(3_600_000);
    expect(beatsOf.length).toBe(4);
    expect(faults.has("heartbeat")).toBe(true);
    for (let turn = 0; turn < 3; turn += 1) {
      swallowed[turn]?.();
      await settled();
    }
    expect(faults.has("heartbeat")).toBe(false);
    await clock.advance(heartbeat.intervalMs);
    expect(beatsOf.length).toBe(5);
    const stopping = heartbeat.stop();
    let isOver = false;
    void stopping.then(() => (isOver = true));
    await clock.advance(3_600_000);
    expect(isOver).toBe(false);
    swallowed[3]?.();
    await stopping;
  });
});

describe("after its stop a heartbeat", () => {
  test("does not bring back a worker that has left", async () => {
    const { clock, ledger, heartbeat } = setUp();
    await heartbeat.start();
    expect(await heartbeat.beat()).toBe(true);
    await heartbeat.stop();
    await ledger.leave(WORKER_ID);
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
    await ledger.leave(WORKER_ID);
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
