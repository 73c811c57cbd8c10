/**
 * What waits, submits and runs take of the heap, on the ledger in memory. Bytes differ by some percent
 * from run to run, and more between versions of Node: bounds are half as much again as was seen.
 */
import { Session, type HeapProfiler } from "node:inspector";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import type { Engine } from "../../src/engine/api.js";
import { createEngine } from "../../src/engine/engine.js";
import type { Job } from "../../src/job/job.js";
import { openMemoryLedger } from "../../src/ledger/memory/memory-ledger.js";
import { systemClock } from "../../src/runtime/clock.js";
import { silentLogger } from "../../src/runtime/logger.js";
import { defineInline } from "../../src/task/definition.js";
import { createTaskRegistry } from "../../src/task/registry.js";
import { SETTINGS, submitted } from "../engine-rig.js";
import { settled } from "../virtual-clock.js";
import { cost } from "./cost.js";

const zero = { name: "zero", run: () => null };

/** On the clock of the system, whose timers take memory too. No job runs. */
async function withEngine(use: (engine: Engine) => Promise<void>): Promise<void> {
  const engine = createEngine({
    ledger: openMemoryLedger({ clock: systemClock }),
    tasks: createTaskRegistry(defineInline([zero])),
    settings: { ...SETTINGS, asyncMaxQueue: 1_000_000 },
    logger: silentLogger,
    worker: false,
  });
  await engine.start();
  try {
    await use(engine);
  } finally {
    await engine.stop();
  }
}

const WAITERS = 2_000;
/** 2,450 to 2,500 seen on Node 20 and 2,030 on 24, some 900 of them the caller's signal with its listener. */
const MOST_BYTES_PER_WAITER = 3_700;

test("a wait that is parked, with its caller's signal", () =>
  withEngine(async (engine) => {
    const jobIds = await Promise.all(
      Array.from({ length: 2 * WAITERS }, () => submitted({ engine }, "zero")),
    );
    const controllers = jobIds.map(() => new AbortController());
    const waits: Promise<Job | null>[] = [];
    const park = async (from: number): Promise<number> => {
      for (let n = from; n < from + WAITERS; n += 1) {
        const signal = controllers[n]?.signal ?? AbortSignal.abort();
        const options = { timeoutMs: 3_600_000, until: "end", signal } as const;
        waits.push(engine.wait(jobIds[n] ?? "", options));
      }
      await settled();
      return usedBytes();
    };
    // The first of them make what all share.
    const before = await park(0);
    const bytes = ((await park(WAITERS)) - before) / WAITERS;
    expect(
      bytes,
      cost("bytes of the heap per parked wait", "src/engine/waits.ts and what it keeps"),
    ).toBeLessThan(MOST_BYTES_PER_WAITER);
    expect(bytes).toBeGreaterThan(0);
    await engine.stop();
    expect(new Set((await Promise.all(waits)).map((job) => job?.status))).toEqual(
      new Set(["queued"]),
    );
  }));

const CALLS = 2_000;
/** 3,700 to 3,770 seen on Node 20 and 3,970 on 24, the record of the ledger in memory included, which stays. */
const MOST_BYTES_PER_SUBMIT = 5_700;
/** 8,310 to 8,480 seen on Node 20 and 7,480 on 24. */
const MOST_BYTES_PER_RUN = 12_700;

test.each([
  {
    what: "submit",
    most: MOST_BYTES_PER_SUBMIT,
    where: "src/engine/admission.ts and src/ledger/memory/submitting.ts",
    call: (engine: Engine) => submitted({ engine }, "zero"),
  },
  {
    what: "synchronous run",
    most: MOST_BYTES_PER_RUN,
    where: "src/engine/sync-requests.ts and attempt.ts",
    call: (engine: Engine) => engine.run({ task: "zero", input: {} }),
  },
])("what a $what allocates, whether it stays or not", ({ what, most, where, call }) =>
  withEngine(async (engine) => {
    const many = async (): Promise<void> => {
      for (let n = 0; n < CALLS; n += 100)
        await Promise.all(Array.from({ length: 100 }, () => call(engine)));
    };
    // Until its code is compiled.
    for (let round = 0; round < 5; round += 1) await many();
    // The least of a few: now and then a table grows, or code is compiled once more.
    const rounds: number[] = [];
    for (let round = 0; round < 4; round += 1) rounds.push((await allocatedBytes(many)) / CALLS);
    const bytes = Math.min(...rounds);
    expect(bytes, cost(`bytes allocated per ${what}`, where)).toBeLessThan(most);
    expect(bytes).toBeGreaterThan(0);
  }),
);

/** Once everything that nobody holds is gone. */
function usedBytes(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}

/** By V8's own samples, which count what has been collected meanwhile as well. */
async function allocatedBytes(work: () => Promise<void>): Promise<number> {
  const session = new Session();
  session.connect();
  try {
    await new Promise<void>((resolve, reject) => {
      const every = {
        samplingInterval: 1_024,
        includeObjectsCollectedByMajorGC: true,
        includeObjectsCollectedByMinorGC: true,
      };
      session.post("HeapProfiler.startSampling", every, (error) => {
        if (error === null) resolve();
        else reject(error);
      });
    });
    await work();
    return await new Promise<number>((resolve, reject) => {
      session.post("HeapProfiler.stopSampling", (error, { profile }) => {
        if (error === null) resolve(sum(profile.head));
        else reject(error);
      });
    });
  } finally {
    session.disconnect();
  }
}

function sum({ selfSize, children }: HeapProfiler.SamplingHeapProfileNode): number {
  return children.reduce((bytes, child) => bytes + sum(child), selfSize);
}
