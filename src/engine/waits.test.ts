import { describe, expect, test } from "vitest";
import type { Job } from "../job/job.js";
import type { Ledger } from "../ledger/ledger.js";
import { openMemoryLedger } from "../ledger/memory/memory-ledger.js";
import { Connection, HeldTask, submitted, withRig } from "../../test/engine-rig.js";
import { settled, VirtualClock } from "../../test/virtual-clock.js";
import { Batcher } from "./batcher.js";
import { Waits } from "./waits.js";

/** Counts subscriptions that are open. */
function counting(ledger: Ledger): { readonly ledger: Ledger; open: number } {
  const counter = {
    open: 0,
    ledger: {
      ...connectionTo(ledger),
      watch: (jobId: string, onChange: () => void) => {
        counter.open += 1;
        const unwatch = ledger.watch(jobId, onChange);
        return () => {
          counter.open -= 1;
          unwatch();
        };
      },
    },
  };
  return counter;
}

function connectionTo(ledger: Ledger): Ledger {
  return new Connection(ledger).ledger;
}

function setUp() {
  const clock = new VirtualClock();
  const connection = new Connection(openMemoryLedger({ clock }));
  const counter = counting(connection.ledger);
  const looks = new Batcher<string, Job | null>((ids) => counter.ledger.get(ids), clock);
  const waits = new Waits({ ledger: counter.ledger, looks, clock });
  const submit = async (jobId: string): Promise<void> => {
    const job = { jobId, task: "t", schemaVersion: 1, payloadJson: "{}" };
    await connection.ledger.submit([job], { maxDepth: 100_000 });
  };
  const finish = async (limit = 1): Promise<void> => {
    const claimed = await connection.ledger.claim({ workerId: "w", tasks: ["t"], limit });
    await connection.ledger.settle(
      claimed.map(({ job }) => ({
        jobId: job.jobId,
        workerId: "w",
        attempt: job.attempt,
        end: { event: "succeed" as const, resultJson: "1" },
      })),
    );
  };
  return { clock, connection, counter, waits, submit, finish, ledger: connection.ledger };
}

const A = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

describe("a wait", () => {
  test("is answered at once for a terminal job, and with null for an unknown one", async () => {
    const { waits, submit, finish, clock, counter } = setUp();
    await submit(A);
    await finish();
    expect(await waits.wait(A, { timeoutMs: 9_000, until: "change" })).toMatchObject({
      status: "succeeded",
    });
    expect(await waits.wait(`${A.slice(0, 25)}0`, { timeoutMs: 9_000, until: "end" })).toBeNull();
    expect(clock.pendingTimers).toBe(0);
    expect(counter.open).toBe(0);
  });

  test("for a change ends with the next state, and one for the end waits on", async () => {
    const { waits, submit, ledger, finish, clock, counter } = setUp();
    await submit(A);
    const change = waits.wait(A, { timeoutMs: 9_000, until: "change" });
    const end = waits.wait(A, { timeoutMs: 9_000, until: "end" });
    await settled();
    const [claimed] = await ledger.claim({ workerId: "w", tasks: ["t"], limit: 1 });
    expect(await change).toMatchObject({ status: "running" });
    expect(counter.open).toBe(1);
    await ledger.settle([
      { jobId: A, workerId: "w", attempt: claimed?.job.attempt ?? 0, end: { event: "stop" } },
    ]);
    expect(await end).toMatchObject({ status: "cancelled" });
    await finish();
    expect(clock.pendingTimers).toBe(0);
    expect(counter.open).toBe(0);
  });

  test("ends with the last look when its time is up, its caller leaves, or the engine stops", async () => {
    const { waits, submit, clock, counter } = setUp();
    await submit(A);
    const timed = waits.wait(A, { timeoutMs: 1_000, until: "change" });
    const controller = new AbortController();
    const left = waits.wait(A, { timeoutMs: 9_000, until: "end", signal: controller.signal });
    const stoppedWait = waits.wait(A, { timeoutMs: 9_000, until: "end" });
    await clock.advance(1_000);
    expect(await timed).toMatchObject({ status: "queued" });
    controller.abort();
    expect(await left).toMatchObject({ status: "queued" });
    waits.close();
    expect(await stoppedWait).toMatchObject({ status: "queued" });
    expect(await waits.wait(A, { timeoutMs: 9_000, until: "end" })).toMatchObject({ jobId: A });
    expect(clock.pendingTimers).toBe(0);
    expect(counter.open).toBe(0);
  });

  test("F3: answers with the last look when the job is forgotten meanwhile", async () => {
    const { waits, submit, ledger, clock } = setUp();
    await submit(A);
    const wait = waits.wait(A, { timeoutMs: 60_000, until: "end" });
    await settled();
    await ledger.cancel([A]);
    await ledger.evict({ ttlMs: 1_000_000, keep: 0, chunk: 10 });
    expect(await wait).toMatchObject({ jobId: A });
    expect(clock.pendingTimers).toBe(0);
  });

  test("rejects when the first look fails, and survives later ones", async () => {
    const { waits, submit, finish, connection, clock, counter } = setUp();
    await submit(A);
    connection.down = ["get"];
    await expect(waits.wait(A, { timeoutMs: 9_000, until: "end" })).rejects.toThrow("cut");
    expect(counter.open).toBe(0);
    connection.down = "none";
    const wait = waits.wait(A, { timeoutMs: 60_000, until: "end" });
    await settled();
    connection.down = ["get"];
    await finish();
    await clock.advance(3_500);
    expect(counter.open).toBe(1);
    connection.down = "none";
    await clock.advance(1_000);
    expect(await wait).toMatchObject({ status: "succeeded" });
    expect(clock.pendingTimers).toBe(0);
  });

  test("F2, F30: none of 10,000 misses its end, looks share calls, and nothing stays behind", async () => {
    const { waits, submit, finish, connection, clock, counter } = setUp();
    const ids = Array.from(
      { length: 10_000 },
      (_, n) => `${A.slice(0, 20)}${String(n).padStart(6, "0")}`,
    );
    for (const id of ids) await submit(id);
    const all = Promise.all(ids.map((id) => waits.wait(id, { timeoutMs: 60_000, until: "end" })));
    // Some end before the first look, some while it is under way, the rest after it.
    await finish(3_000);
    await settled(3);
    await finish(3_000);
    await settled();
    await finish(4_000);
    const answers = await all;
    expect(answers.filter((job) => job?.status === "succeeded").length).toBe(10_000);
    expect(connection.calls.get).toBeLessThan(200);
    expect(counter.open).toBe(0);
    expect(clock.pendingTimers).toBe(0);
  });

  test("through the engine: every zero-length job's wait ends with it", async () => {
    const zero = { name: "zero", run: () => null };
    await withRig({ tasks: [zero], settings: { asyncMaxQueue: 5_000 } }, async (rig) => {
      const waits: Promise<Job | null>[] = [];
      for (let n = 0; n < 1_000; n += 1)
        waits.push(
          submitted(rig, "zero").then((jobId) =>
            rig.engine.wait(jobId, { timeoutMs: 60_000, until: "end" }),
          ),
        );
      const jobs = await Promise.all(waits);
      expect(jobs.filter((job) => job?.status === "succeeded").length).toBe(1_000);
    });
  });

  test("is answered at the engine's stop, which does not wait for it", async () => {
    const slow = new HeldTask("slow");
    let wait: Promise<Job | null> = Promise.resolve(null);
    await withRig({ tasks: [slow.options] }, async (rig) => {
      const jobId = await submitted(rig, "slow");
      await settled();
      wait = rig.engine.wait(jobId, { timeoutMs: 300_000, until: "end" });
      await settled();
    });
    expect(await wait).toMatchObject({ status: "running" });
  });
});
