/** A worker that takes its time to stop, seen by another one on the same ledger. */
import { expect, test } from "vitest";
import { openMemoryLedger } from "../../src/ledger/memory/memory-ledger.js";
import { Connection, createRig, HeldTask, stopped, submitted } from "../engine-rig.js";
import { settled, VirtualClock } from "../virtual-clock.js";

test("a job that goes on during a long shutdown stays its worker's, and its end is recorded", async () => {
  const clock = new VirtualClock();
  const ledger = openMemoryLedger({ clock });
  const slow = new HeldTask("slow");
  const settings = { shutdownTimeoutMs: 3_600_000, workerTimeoutMs: 30_000 };
  // Each has its own connection; the ledger is one.
  const shared = { clock, tasks: [slow.options], settings };
  const leaving = createRig({ ...shared, ledger: new Connection(ledger).ledger });
  await leaving.engine.start();
  const jobId = await submitted(leaving, "slow", { maxAttempts: 3 });
  await settled();
  const staying = createRig({ ...shared, ledger: new Connection(ledger).ledger });
  await staying.engine.start();
  const stopping = leaving.engine.stop();
  await clock.advance(20 * settings.workerTimeoutMs);
  expect(await ledger.get([jobId])).toMatchObject([{ status: "running", attempt: 1 }]);
  expect(slow.calls).toHaveLength(1);
  slow.call(0).succeed("finished all the same");
  await stopping;
  expect(await ledger.get([jobId])).toMatchObject([{ status: "succeeded", attempt: 1 }]);
  await stopped(staying);
  expect(clock.pendingTimers).toBe(0);
});
